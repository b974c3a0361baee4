// Package journal keeps the lines of consoles on disk. A journal is a few files of
// text: one is written and rotated when it is full, and the oldest is removed.
//
// A journal has one writer and any number of readers, which take no lock while
// they read: they find a file by its inode, whatever it has been renamed to.
// Offsets count the bytes of the whole journal, over all of its files, since it
// was opened; they are good for one process. The times of records rise strictly, and
// identify them for good: the caller sets v1.Line.Shown where the engine's do not.
//
// berth may be killed at any time. Open ignores a record that was cut, and the
// next Write truncates the file there. Damage in the middle costs the damaged
// records only.
//
// journal.go has the journal and its writer, segments.go its files and their rotation, record.go
// the form of a record. read.go reads forward, backward.go backward, seek.go finds a time.
// checkpoint.go keeps what of the engine's output was read.
//
// The package knows neither listeners nor an engine.
package journal
