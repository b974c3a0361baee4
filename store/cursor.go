package store

const cursorPrefix = "cursor/"

// Cursor is the seq that SetCursor stored under name, or 0.
func Cursor(tx *Tx, name string) uint64 {
	seq, err := tx.number(cursorPrefix + name)
	tx.fail(err)
	return seq
}

// SetCursor stores the seq up to which the transitions have been read.
func SetCursor(tx *Tx, name string, seq uint64) error {
	return tx.setNumbers(cursorPrefix+name, seq)
}
