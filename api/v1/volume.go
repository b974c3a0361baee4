package v1

// Volume is a directory that lives as long as its client wants.
type Volume = Object[VolumeSpec, VolumeStatus]

// VolumeSpec is what the client asked for. Its id is a UUID.
type VolumeSpec struct {
	SizeLimit int64 `json:"size_limit,omitempty"` // bytes; 0 is no limit
}

// VolumeStatus is what berth observed.
type VolumeStatus struct {
	Created    bool        `json:"created"`        // the directory was made; from then on it is never made again
	Size       int64       `json:"size,omitempty"` // bytes, as last measured
	Conditions []Condition `json:"conditions,omitempty"`
}

// The values of storage.hard_limit: whether a new volume with a limit gets a file
// system of its own, where the host can.
const (
	HardLimitAuto = "auto"
	HardLimitNone = "none"
)

// DirectoryReady is a volume's condition: its directory is there and usable.
const DirectoryReady = "DirectoryReady"
