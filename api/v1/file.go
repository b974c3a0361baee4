package v1

// The types of a FileEntry. What is neither a folder nor a regular file, such
// as a link, counts as a file: metadata never follows links.
const (
	TypeFile      = "file"
	TypeDirectory = "directory"
)

// FileEntry is one entry of a folder inside a volume.
type FileEntry struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Size       int64  `json:"size"`        // bytes; 0 for a folder
	Mode       string `json:"mode"`        // octal, such as 0644
	ModifiedAt int64  `json:"modified_at"` // unix seconds
	Symlink    bool   `json:"symlink"`
}

// FoundFile is one result of a search.
type FoundFile struct {
	Path string `json:"path"` // from the volume's root
	Type string `json:"type"`
	Size int64  `json:"size"`
}

// DiskReserve returns how many bytes of a file system of total bytes file operations
// leave to the store: twice what it asks for itself.
func DiskReserve(total int64) int64 { return min(max(total/10, 64<<20), 512<<20) }

// SearchResult is what a search has found.
type SearchResult struct {
	Files     []FoundFile `json:"files"`
	Truncated bool        `json:"truncated"` // the search ended before it had seen everything
}

// Compression is a request for an archive.
type Compression struct {
	Format string   // one of Formats; empty is tar.gz
	Output string   // name of the archive without its extension, below Folder
	Folder string   // that Output and Paths are relative to; empty is the root
	Paths  []string // what goes in; none is all of Folder
}

// Archive is what a compression made.
type Archive struct {
	Path    string // from the volume's root
	Size    int64  // bytes
	Skipped int    // links that point outside the volume
}

// Formats lists the archive formats, which are their file extensions too.
var Formats = []string{"zip", "tar", "tar.gz", "tar.bz2"}

// The refusals of a volume whose directory cannot be used.
var (
	ErrDirectoryMissing = &Error{Unavailable, "Volume directory is missing"}
	ErrNotADirectory    = &Error{Unavailable, "Volume directory was replaced by something else"}
)
