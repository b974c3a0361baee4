package v1

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

// Archive is the result of a compression.
type Archive struct {
	Path    string // from the volume's root
	Size    int64  // bytes
	Skipped int    // links that point outside the volume
}

// Decompression is a request to extract an archive.
type Decompression struct {
	Archive     string // path of the archive
	Destination string // folder of its entries
	Encoding    string // of names in a zip that are not marked as UTF-8, as IANA names it; empty: IBM437
}

// Extraction is the result of a Decompression. The reasons of Skipped are SkippedSpecial and
// SkippedLink.
type Extraction struct {
	Skipped      []Skipped // entries of the archive that were left out, at most MaxSkippedEntries
	SkippedTotal int       // all of them
}

// MaxSkippedEntries is how many entries an Extraction lists.
const MaxSkippedEntries = 100

// Formats returns the archive formats, which are also their file extensions.
func Formats() []string { return []string{"zip", "tar", "tar.gz", "tar.bz2"} }

// The refusals of a volume with an unusable directory.
var (
	ErrDirectoryMissing = &Error{Unavailable, "Volume directory is missing"}
	ErrNotADirectory    = &Error{Unavailable, "Volume directory was replaced by something else"}
)
