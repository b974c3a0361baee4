package v1

import "time"

// SnapshotOptions select what an archive of a volume holds.
type SnapshotOptions struct {
	// Ignore are patterns in .gitignore syntax, relative to the volume's root.
	Ignore []string
	// Progress is called now and then with the uncompressed bytes that were read, and
	// an estimate of all of them. It must not block. It may be nil.
	Progress func(bytes, total int64)
	// Written is called after n more bytes of the archive were written, for about each
	// 1 MiB, and at the end. The archive ends with its error. It may be nil.
	Written func(n int64) error
}

// Snapshot describes the archive of a volume that was written.
type Snapshot struct {
	Files        int64     // entries that are not folders
	Bytes        int64     // bytes on disk that the archive extracts to
	Skipped      []Skipped // at most MaxSkipped, never nil
	SkippedTotal int64     // all of them, those that Skipped lacks included
	Size         int64     // bytes of the archive
	Checksum     string    // of the archive: "sha256:" and 64 hexadecimal digits
}

// Skipped is an entry of a volume that its archive lacks, or holds as it was read.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// MaxSkipped is how many skipped entries a Snapshot lists.
const MaxSkipped = 1000

// The reasons of Skipped.
const (
	SkippedChanged    = "changed"    // a file changed while it was read; the archive holds what was read
	SkippedRemoved    = "removed"    // removed, or replaced by another type, before it was read
	SkippedSpecial    = "special"    // a FIFO, a socket or a device
	SkippedLink       = "link"       // of an Extraction only: a link that leaves the volume, or a hard link to what was skipped
	SkippedTrailing   = "trailing"   // of an Extraction only: bytes behind the end of a gzip, which has this name
	SkippedUnreadable = "unreadable" // the host refuses to read it, or it is nested too deeply
)

// SnapshotArchive identifies the archive of a volume.
type SnapshotArchive struct {
	Checksum string // "sha256:" and 64 hexadecimal digits
	Size     int64  // bytes of the archive as it is stored
	Bytes    int64  // bytes on disk that it extracts to, of its Snapshot
}

// RestoreOptions select how an archive is restored into a volume.
type RestoreOptions struct {
	Mode string // RestoreReplace or RestoreMerge
	// Paths are the only entries that are restored, with all below them; empty: all. It needs RestoreMerge.
	Paths []string
	// Progress is called now and then with the uncompressed bytes that were
	// extracted, and how many there are. It must not block. It may be nil.
	Progress func(bytes, total int64)
}

// The modes of a restore.
const (
	RestoreReplace = "replace" // the volume becomes exactly what the archive holds
	RestoreMerge   = "merge"   // entries that the archive lacks stay
)

// TreeSum describes a tree of files. Two trees with the same digest have the same names, types, owners, modes, times,
// sizes and links.
type TreeSum struct {
	Digest  string // "sha256:" and 64 hexadecimal digits
	Entries int64
	Bytes   int64 // of the files, holes included
}

// Sent describes what was sent of a tree.
type Sent struct {
	Bytes   int64   // as they were sent
	Entries int64   // that differed
	Arrived int64   // grows with the files, and their bytes, of this round that the other tree had already
	Left    int64   // bytes of files that were left: see SendOptions.Until
	Partial bool    // the time was over before the end
	Tree    TreeSum // as it was read; not known of a partial one
}

// SendOptions select what is sent of a volume.
type SendOptions struct {
	Since    time.Time           // files that have changed since are sent, whatever they look like
	Until    time.Time           // entries but folders that have changed since are left to the next call; zero: none are
	Round    time.Time           // the beginning of a round, in whose calls each file is sent once; zero: no round
	Priority Priority            // of reading
	Most     time.Duration       // from the first entry to the last one, or part of a file, that is begun; 0: no limit
	Progress func(bytes int64)   // called with the bytes of files that were sent so far; may be nil
	Written  func(n int64) error // see SnapshotOptions
}
