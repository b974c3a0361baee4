// Package blob keeps the archives of backups: in a directory, or in a bucket of S3.
//
// A Target stores a stream under a key and returns it later. An archive is visible
// only when it is complete and durable. What an interrupted Put leaves, an unfinished
// file or an unfinished multipart upload, is never visible as an archive; Abort and
// Delete remove it, after a crash too.
//
// Memory is bounded whatever the size of an archive: a Directory copies, an S3 keeps
// two parts. A Target verifies what it sends, part by part; the caller verifies the
// checksum of what it reads.
//
// blob.go has the Target. directory.go is the directory. The bucket is in s3.go: upload.go
// sends an archive in the parts of part.go, download.go reads it; retry.go repeats requests,
// transport.go ends those without progress.
//
// The package must not know what an archive contains, nor what a backup is.
package blob
