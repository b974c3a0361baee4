// Package kv wraps Badger, and returns errors where Badger would end the process or lose data: a
// key-value store whose writes survive a kill and a power cut when Commit returns. It is the only
// importer of Badger, and knows nothing of what its keys mean.
//
// These are the situations, and what the package does:
//
//   - Where the disk has no space for a page of its memory maps, the kernel kills
//     the process. Space is allocated beforehand, and writes are refused while little
//     is free (disk.go).
//   - After a failed commit nobody knows what is on the disk, and Badger may be unable
//     to write. Nothing is written any more, and the daemon ends, see DB.Failed.
//   - It opens a damaged or truncated table or log as an older state. Open
//     verifies the tables (open.go), and a checkpoint beside them records what
//     was on the disk (checkpoint.go).
//   - It blocks commits while too many tables wait for a merge (compactor.go).
//
// One goroutine at a time writes: it alone calls Begin, the methods of Batch, and Checkpoint.
package kv
