// Package snapshot writes a tree of files to a tar.zst and extracts it again without
// any difference: names, all 12 bits of modes, numeric owners, times to the
// nanosecond, links of any target, hard links and holes.
//
// The archive is a PAX tar that GNU tar extracts. Files with holes have GNU's sparse
// format 1.0, which archive/tar does not write. The stream is a sequence of
// independent zstd frames, which are compressed in parallel. The first member is the
// root folder, the last one is the manifest, a list of all others with the SHA-256 of
// each file.
//
// Write reads a tree while others change it, hostile ones included: it works with
// open folders and single names, opens only regular files, and never waits for one.
//
// Extract and Verify accept only what Write produced. They encode each header again
// and compare it with the one that they read, and they derive the manifest from the
// members and compare its checksum, so that neither needs memory for the list.
//
// write.go writes: content.go and sparse.go the content of a file, frames.go compresses,
// ignore.go has the patterns of what is left out. read.go reads the members again and checks
// them, for Verify and for extract.go, and merge.go puts what was extracted into a tree. entry.go
// has a member, header.go and headerread.go its form in the archive, manifest.go its line in the
// manifest.
//
// Bytes are bytes on disk, in units of 4 KiB (ADR 0028). The package must not know volumes,
// limits or where archives are stored.
package snapshot
