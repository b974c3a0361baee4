package v1

// Volume is a directory that lives as long as its client wants.
type Volume = Object[VolumeSpec, VolumeStatus]

// VolumeSpec is what the client asked for. Its id is a UUID.
type VolumeSpec struct {
	SizeLimit int64 `json:"size_limit,omitempty"` // bytes; 0 is no limit
}

// VolumeStatus is what berth observed.
type VolumeStatus struct {
	Created    bool        `json:"created"`         // the directory was made; from then on it is never made again
	Size       int64       `json:"size,omitempty"`  // bytes on disk, as last measured
	Files      int64       `json:"files,omitempty"` // files and folders, as last measured
	Conditions []Condition `json:"conditions,omitempty"`
}

// Usage is what the volume occupied when it was last measured.
func (s VolumeStatus) Usage() Usage { return Usage{Bytes: s.Size, Files: s.Files} }

// Usage is what a tree of files occupies on disk.
type Usage struct {
	Bytes int64 // each file and folder counts a block of 4 KiB at least
	Files int64 // files and folders: inodes
}

// What FilesLimit allows. A file system of this host's kind (ext4) has an inode for
// each 16 KiB, so who has a part of its space has the same part of its inodes.
const (
	bytesPerFile = 16 * 1024
	filesAtLeast = 16 * 1024
)

// FilesLimit is how many files and folders may lie within a limit of that many
// bytes; 0 bytes is no limit, and no limit of files.
func FilesLimit(bytes int64) int64 {
	if bytes <= 0 {
		return 0
	}
	return max(bytes/bytesPerFile, filesAtLeast)
}

// Add is the usage of both.
func (u Usage) Add(v Usage) Usage { return Usage{u.Bytes + v.Bytes, u.Files + v.Files} }

// Exceeds reports whether the usage is over a limit in bytes, or over its
// FilesLimit. 0 is no limit.
func (u Usage) Exceeds(limit int64) bool {
	return limit > 0 && (u.Bytes > limit || u.Files > FilesLimit(limit))
}

// The values of storage.hard_limit: whether a new volume with a limit gets a file
// system of its own, where the host can.
const (
	HardLimitAuto = "auto"
	HardLimitNone = "none"
)

// DirectoryReady is a volume's condition: its directory is there and usable.
const DirectoryReady = "DirectoryReady"
