package kv

// Badger begins a new log when the old one is full, which takes space: on a full
// disk it must not happen. So Rotate makes Badger begin one early, while the disk
// has space, and the writes that are allowed on a full disk fit into it.

const (
	fillerKey  = "meta/filler"     // zeros that nobody reads
	fillerSize = memTableSize / 16 // bytes: few fillers, which all updates wait for, and little more than needed
)

// Rotate has Badger begin a new log if little space is left in the old one and
// the disk has space for another. The writer calls it after commits.
func (db *DB) Rotate() {
	const limit = 2 * memTableSize / fillerSize // ends the loop whatever Badger does
	for range limit {
		if !db.disk.needsRotation() || db.Fault() != nil || db.checkFree() != nil {
			return
		}
		b := db.Begin()
		b.filler = true
		err := b.Add(map[string][]byte{fillerKey: make([]byte, fillerSize)}, false)
		if err == nil {
			err = b.Commit()
		}
		b.Discard()
		if err != nil {
			return // the next writer gets it
		}
	}
}
