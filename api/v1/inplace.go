package v1

import (
	"io"
	"io/fs"
	"time"
)

// OpenMode is how a file of a volume is opened in place.
type OpenMode struct {
	Read, Write bool
	Append      bool // each write goes to the end of the file
	Create      bool // a missing file is created
	Exclusive   bool // with Create: an existing file is an error
	Truncate    bool
}

// FileHandle is a file of a volume that is open in place. It is safe for concurrent use.
// A write over the volume's limit returns ErrSizeLimit, and removes the file if the
// handle has created it.
type FileHandle interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Changed reports whether the open has created or emptied the file.
	Changed() bool
}

// FolderHandle reads the entries of a folder of a volume, one after the other, in
// constant memory. It is for one goroutine.
type FolderHandle interface {
	// Next returns the next entry, without following a link, or io.EOF.
	Next() (fs.FileInfo, error)
	io.Closer
}

// FileAttributes is a change of the attributes of a file. A nil field stays as it is.
type FileAttributes struct {
	Size             *int64 // bytes
	Mode             *fs.FileMode
	UID, GID         *uint32 // only those that the file has are allowed
	Accessed, Edited *time.Time
}

// VolumeSpace is the space of a volume, in bytes: that of its limit, or else that of the
// host, as far as file operations may use it.
type VolumeSpace struct {
	Total, Free int64
	Files       int64 // that the last scan found
}
