// Package backup writes a tree of files to a tar.zst and extracts it again: names, all
// 12 bits of modes, numeric owners, times to the nanosecond, links of any target and hard
// links. Holes of a file are written as the zeros that they read as; blocks of zeros
// become holes when they are extracted.
//
// The archive is a PAX tar in one zstd frame, which GNU tar extracts. It has no member of
// its own: the SHA-256 and the size of the whole, which Write returns and Extract
// requires, prove that it is complete and unchanged.
//
// Write reads a tree while others change it, hostile ones included: it opens only
// regular files, through an os.Root for each folder, and never waits for one. It runs on
// one thread that has the lowest priority, compression included, so that a game server
// on the same host does not notice it.
//
// Bytes are bytes on disk, in units of 4 KiB; a block of zeros takes none. The package must
// not know volumes, limits or where archives are stored.
package backup
