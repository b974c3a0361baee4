// Package kv wraps Badger, and returns errors where Badger would end the process or lose data: a
// key-value store whose writes survive a kill and a power cut when Commit returns. It is the only
// importer of Badger, and knows nothing of what its keys mean.
//
// These are the situations, and what the package does:
//
//   - Where the disk has no space for a page of its memory maps, the kernel kills
//     the process. Space is allocated beforehand (allocate.go), and writes are refused
//     while little is free (disk.go, rotate.go).
//   - After a failed commit, it may be unable to write. It is closed and opened
//     again, and the writes are committed once more (reopen.go).
//   - It opens a damaged or truncated table or log as an older state. Open
//     verifies the tables (verify.go), and a checkpoint beside them records what
//     was on the disk (checkpoint.go).
//   - It blocks commits while too many tables wait for a merge (compactor.go).
//
// One goroutine at a time writes: it alone calls Begin, the methods of Batch, Rotate, Checkpoint
// and Repair. View, Writable and SyncLog may be called by any. db.go has the DB, open.go with
// directory.go opens it, batch.go with commit.go writes, txn.go reads items with their versions,
// which versions.go assigns; check.go reads a database without a change of it. wal.go logs a batch
// that Badger does not have yet, for writes that cannot wait for a commit.
//
// Beside Badger's files lie the checkpoint (MARK, checkpoint.go), RESERVE (disk.go) and WAL.
package kv
