package archive

import (
	"errors"
	"io"
	"io/fs"
	"time"

	v1 "berth/api/v1"
)

// Entry is one file, folder or link of an archive.
type Entry struct {
	Name     string
	Mode     fs.FileMode // type and permission bits
	Time     time.Time   // of the last modification; zero if the archive has none
	Size     int64       // bytes of Content
	UID, GID int         // written to a tar, and not read
	Target   string      // of a link
	HardLink bool        // Target is the name of an earlier entry

	// Content is the content of a regular file. It is valid until Add returns.
	Content io.Reader
}

// Destination receives the entries of an archive.
type Destination interface {
	// Add adds one entry and reads its content to the end. After an error no
	// entry follows, unless it is ErrSkippedLink.
	Add(Entry) error
}

// ErrSkippedLink is an error of a Destination that cannot hold a link. The extraction goes on.
var ErrSkippedLink = errors.New("the link is skipped")

// Limits bound the work and the memory that one archive may cost.
type Limits struct {
	Bytes   int64 // bytes that an archive may extract to
	Entries int   // entries that an archive may extract to
	Depth   int   // nesting of folders in an archive that is extracted
	Ratio   int64 // extracted bytes per byte of the archive, above 64 MiB

	ZipDirectoryBytes int64 // bytes of the directory of a zip, read or written
}

// HardLinks reports whether a format has hard links.
func HardLinks(format string) bool { return format != "zip" }

func invalid(format string, args ...any) error { return v1.Errorf(v1.InvalidArchive, format, args...) }
