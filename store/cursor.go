package store

const cursorPrefix = "cursor/"

// Cursor returns the seq that SetCursor stored under name, or 0.
func Cursor(tx *Tx, name string) uint64 {
	seq, err := tx.number(cursorPrefix + name)
	tx.fail(err)
	return seq
}

// SetCursor stores the seq up to which a reader has read the transitions.
func SetCursor(tx *Tx, name string, seq uint64) error {
	return tx.setNumbers(cursorPrefix+name, seq)
}
