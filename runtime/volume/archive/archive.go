package archive

import (
	"errors"
	"io"
	"io/fs"
	"time"

	"golang.org/x/sync/semaphore"

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
	// entry follows, unless it is ErrSkippedLink or ErrNoTarget.
	Add(Entry) error
}

// Errors of a Destination after which the extraction may go on.
var (
	ErrSkippedLink = errors.New("the link is skipped")                  // the Destination cannot hold it
	ErrNoTarget    = errors.New("the hard link has no file to link to") // which may have been skipped
)

// Limits bound the work and the memory that one archive may cost.
type Limits struct {
	Bytes   int64 // bytes that an archive may extract to
	Entries int   // entries that an archive may extract to
	Depth   int   // nesting of folders in an archive that is extracted
	Ratio   int64 // extracted bytes per byte of the archive, above 64 MiB

	ZipDirectoryBytes int64 // bytes of the directory of a zip, read or written

	// ZipDirectories is shared by all zips that are read or written at once, and has the bytes of their
	// directories, which are kept in memory. Nil is no bound.
	ZipDirectories *semaphore.Weighted
}

// zipMemory are the bytes of ZipDirectories that one zip has.
type zipMemory struct {
	of   *semaphore.Weighted
	held int64
}

// zipStep is how many bytes a zip takes from ZipDirectories at a time.
const zipStep = 256 << 10

// grow takes bytes until there are n.
func (m *zipMemory) grow(n int64) error {
	if m.of == nil || n <= m.held {
		return nil
	}
	more := (n - m.held + zipStep - 1) / zipStep * zipStep
	if !m.of.TryAcquire(more) {
		return v1.Errorf(v1.TooManyOperations, "Too many large zips are read or written: try again later, or choose another format")
	}
	m.held += more
	return nil
}

// release returns them.
func (m *zipMemory) release() {
	if m.of != nil {
		m.of.Release(m.held)
		m.held = 0
	}
}

// HardLinks reports whether a format has hard links.
func HardLinks(format string) bool { return format != "zip" }

func invalid(format string, args ...any) error { return v1.Errorf(v1.InvalidArchive, format, args...) }
