package v1

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"syscall"
)

// The types of a FileEntry. Everything but a folder, such as a link, counts as a
// file: metadata never follows links.
const (
	TypeFile      = "file"
	TypeDirectory = "directory"
)

// FileEntry is one entry of a folder inside a volume.
type FileEntry struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Size       int64  `json:"size"`                 // bytes; 0 for a folder
	Mode       string `json:"mode"`                 // octal, such as 0644
	ModifiedAt int64  `json:"modified_at"`          // unix seconds
	ChangedAt  int64  `json:"changed_at,omitempty"` // of its content or its attributes, unix seconds; of one in a backup, none
	Symlink    bool   `json:"symlink"`
	Mime       string `json:"mime,omitempty"` // by its first bytes, if it was asked for; empty: unknown

	// Link is the target of a link as it is written, and TargetType the type of what it leads to; the
	// latter is empty if that is missing or outside the volume.
	Link       string `json:"link,omitempty"`
	TargetType string `json:"target_type,omitempty"`
}

// WithDenied returns a context whose operations on files are refused what lists of patterns select.
// Each list is the denied_files of a container.
func WithDenied(ctx context.Context, lists [][]string) context.Context {
	return context.WithValue(ctx, deniedKey{}, lists)
}

// DeniedIn returns the lists of patterns of a context.
func DeniedIn(ctx context.Context) [][]string {
	lists, _ := ctx.Value(deniedKey{}).([][]string)
	return lists
}

type deniedKey struct{}

// FileTag returns an ETag of a file from inode, modification time and size. berth replaces
// files by new inodes, and a write by a container changes the modification time. It returns
// the empty string for nil.
func FileTag(info fs.FileInfo) string {
	if info == nil {
		return ""
	}
	var inode uint64
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino
	}
	return fmt.Sprintf(`"%x-%x-%x"`, inode, info.ModTime().UnixNano(), info.Size())
}

// FoundFile is one result of a search.
type FoundFile struct {
	Path       string `json:"path"` // from the volume's root
	Type       string `json:"type"`
	Size       int64  `json:"size"`
	ModifiedAt int64  `json:"modified_at"`    // unix seconds
	ChangedAt  int64  `json:"changed_at"`     // of its content or its attributes, unix seconds
	Mime       string `json:"mime,omitempty"` // by its first bytes, if it was asked for; empty: unknown
}

// DiskReserve returns the free bytes that file operations leave to the store on a file
// system of total bytes: twice the store's own reserve.
func DiskReserve(total int64) int64 { return min(max(total/10, 64<<20), 512<<20) }

// SearchResult is the result of a search.
type SearchResult struct {
	Files     []FoundFile `json:"files"`
	Truncated bool        `json:"truncated"` // the search stopped before it visited every file
}

// Compression is a request for an archive.
type Compression struct {
	Format string   // one of Formats; empty: tar.gz
	Output string   // name of the archive without its extension, below Folder
	Folder string   // base of Output and Paths; empty: the root
	Paths  []string // files and folders to archive; empty: all of Folder
}

// Tree is a folder of a volume that is sent as an archive.
type Tree struct {
	Folder string   // the root is "."
	Format string   // one of StreamFormats
	Ignore []string // patterns of paths from Folder that are left out, as in .gitignore
}

// ArchiveStream is an archive that WriteTo makes while it writes it, once. An error of WriteTo means that it is not
// complete. The caller closes it.
type ArchiveStream interface {
	io.WriterTo
	io.Closer
}

// Archive is the result of a compression.
type Archive struct {
	Path    string // from the volume's root
	Size    int64  // bytes
	Skipped int    // links that point outside the volume
}

// Decompression is a request to extract an archive.
type Decompression struct {
	Archive     string // path of the archive; of one that arrives, empty
	Destination string // folder of its entries
	Format      string // that the archive must have, one of StreamFormats; empty: any
	Encoding    string // of names in a zip that are not marked as UTF-8, as IANA names it; empty: IBM437 of Windows, else bytes
}

// Extraction is the result of a Decompression. The reasons of Skipped are SkippedSpecial,
// SkippedLink and SkippedTrailing.
type Extraction struct {
	Skipped      []Skipped // entries of the archive that were left out, at most MaxSkippedEntries
	SkippedTotal int       // all of them
}

// MaxSkippedEntries is how many entries an Extraction lists.
const MaxSkippedEntries = 100

// Formats returns the archive formats, which are also their file extensions.
func Formats() []string { return []string{"zip", "tar", "tar.gz", "tar.bz2"} }

// StreamFormats returns the formats of archives that are sent or received as a stream.
func StreamFormats() []string { return []string{"tar", "tar.gz", "tar.zst", "zip"} }

// The refusals of a volume with an unusable directory.
var (
	ErrDirectoryMissing = &Error{Unavailable, "Volume directory is missing"}
	ErrNotADirectory    = &Error{Unavailable, "Volume directory was replaced by something else"}
)
