// Package quota keeps volumes within their limits.
//
// A Quota tracks the usage of one volume against its soft limit, and a Space the
// free space that the volumes' file system must keep for the daemon's store. An
// operation grows a Reservation in both before it writes, so that operations in
// flight together never exceed them. Images are file systems of their own, which
// make a volume's limit hard.
//
// quota.go has the Quota, and what a file occupies and its removal frees; space.go and
// reservation.go have the others. images.go makes and mounts images, replacement.go is the new
// one of a restore.
//
// Bytes are bytes on disk, in units of Block. The package returns v1.ErrSizeLimit
// and v1.ErrDiskFull. It must not know how files are read or written.
package quota
