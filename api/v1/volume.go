package v1

// Volume is a directory that lives until its deletion is requested.
type Volume = Object[VolumeSpec, VolumeStatus]

// VolumeSpec is the desired state of a volume. Its id is a UUID.
type VolumeSpec struct {
	SizeLimit int64             `json:"size_limit,omitempty"` // bytes; 0 is no limit
	Storage   string            `json:"storage,omitempty"`    // a key of kubernetes.claims; empty: storage.volumes_path. It never changes
	Name      string            `json:"name,omitempty"`       // for people; need not be unique
	Labels    map[string]string `json:"labels,omitempty"`
}

// VolumeChange is a change of a volume. A nil field stays as it is.
type VolumeChange struct {
	Name   *string            `json:"name,omitempty"`
	Labels *map[string]string `json:"labels,omitempty"` // all of them
}

// VolumeView is a volume as clients receive it.
type VolumeView struct {
	VolumeID string `json:"volume_id"`
	Path     string `json:"path"` // its directory on the daemon's host
	VolumeSpec
	Size      int64    `json:"size"`       // bytes, as last measured
	CreatedAt int64    `json:"created_at"` // Unix seconds
	UsedBy    []string `json:"used_by"`    // the containers that use it
	Ready     bool     `json:"ready"`      // its directory was there when it was last checked
	Class     string   `json:"class"`      // StorageClass of its own claim, whose name is the volume's id; empty: it has none
	Message   string   `json:"message"`    // why it is not ready, or its claim is too small; else empty
}

// MarshalJSON writes every field.
func (v VolumeView) MarshalJSON() ([]byte, error) { return marshalWhole(v) }

// VolumeStatus is the observed state of a volume.
type VolumeStatus struct {
	Class      string      `json:"class,omitempty"` // StorageClass of the volume's own claim; empty: it lies on one with others
	Created    bool        `json:"created"`         // the directory was created; it is never created again
	Size       int64       `json:"size,omitempty"`  // bytes on disk, as last measured
	Files      int64       `json:"files,omitempty"` // files and folders, as last measured
	Conditions []Condition `json:"conditions,omitempty"`
}

// Ready reports whether the directory was there and usable when it was last checked.
func (s VolumeStatus) Ready() bool {
	return FindCondition(s.Conditions, DirectoryReady).Status == True
}

// Missing reports whether the directory was created, and is missing or replaced by
// something else. An error that says nothing about the directory does not count.
func (s VolumeStatus) Missing() bool {
	switch FindCondition(s.Conditions, DirectoryReady).Reason {
	case ReasonDirectoryMissing, ReasonNotADirectory:
		return true
	}
	return false
}

// Message returns why the directory is not usable, or the claim of the volume is too small; else empty.
func (s VolumeStatus) Message() string {
	for _, t := range []string{DirectoryReady, ClaimResized} {
		if c := FindCondition(s.Conditions, t); c.Status == False {
			return c.Message
		}
	}
	return ""
}

// Usage returns the last measured usage of the volume.
func (s VolumeStatus) Usage() Usage { return Usage{Bytes: s.Size, Files: s.Files} }

// Usage is the disk usage of a tree of files.
type Usage struct {
	Bytes int64 // each file and folder counts a block of 4 KiB at least
	Files int64 // files and folders: inodes
}

// The constants of FilesLimit. An ext4 file system has an inode for each 16 KiB, so a
// share of its space comes with the same share of its inodes.
const (
	bytesPerFile = 16 * 1024
	filesAtLeast = 16 * 1024
)

// FilesLimit returns the limit of files and folders that belongs to a limit in bytes. 0
// bytes is no limit, and no limit of files.
func FilesLimit(bytes int64) int64 {
	if bytes <= 0 {
		return 0
	}
	return max(bytes/bytesPerFile, filesAtLeast)
}

// Add returns the sum of both usages.
func (u Usage) Add(v Usage) Usage { return Usage{u.Bytes + v.Bytes, u.Files + v.Files} }

// Exceeds reports whether the usage is over a limit in bytes, or over its
// FilesLimit. 0 is no limit.
func (u Usage) Exceeds(limit int64) bool {
	return limit > 0 && (u.Bytes > limit || u.Files > FilesLimit(limit))
}

// The values of storage.hard_limit: whether new volumes get project quotas where their file
// system has them.
const (
	HardLimitAuto = "auto"
	HardLimitOff  = "off"
)

// DirectoryReady is a volume's condition: its directory is there and usable.
const DirectoryReady = "DirectoryReady"

// ClaimResized is a condition of a volume with a claim of its own: the claim requests the limit of the volume.
const ClaimResized = "ClaimResized"

// UsageMeasured is a volume's condition: its last scan measured the whole tree. While it
// is False, a volume with a limit counts as over it. It is absent before the first scan
// that did not.
const UsageMeasured = "UsageMeasured"

// Reasons why a scan did not measure a whole tree.
const (
	ReasonTooDeep      = "NestedTooDeeply"
	ReasonUnreadable   = "Unreadable"
	ReasonTooManyNames = "TooManyNames"
)

// Reasons of DirectoryReady that code acts on.
const (
	ReasonDirectoryMissing = "DirectoryMissing"
	ReasonNotADirectory    = "NotADirectory"
	ReasonClaimPending     = "ClaimPending" // the volume's own claim, or its directory, is not there yet
)
