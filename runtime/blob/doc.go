// Package blob keeps the archives of backups: in a directory, or in a bucket of S3.
//
// A Target stores a stream under a key and returns it later. An archive is visible
// only when it is complete and durable. What an interrupted Put leaves, an unfinished
// file or an unfinished multipart upload, is never visible as an archive; Abort and
// Delete remove it, after a crash too.
//
// Memory is bounded whatever the size of an archive: a Directory copies, an S3 keeps
// one part. The server compares each part with its MD5, and Put compares the size and the
// ETag of the object; the caller verifies the checksum of what it reads.
//
// The package must not know what an archive contains, nor what a backup is.
package blob
