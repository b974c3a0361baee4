package runtime

// EngineInfo is what an engine reports about itself and its host.
type EngineInfo struct {
	Version       string       `json:"version"` // such as 28.5.2
	API           string       `json:"api"`     // highest version of its API
	Kernel        string       `json:"kernel"`
	OS            string       `json:"os"`
	Arch          string       `json:"arch"`
	StorageDriver string       `json:"storage_driver"`
	CgroupVersion string       `json:"cgroup_version"` // 1 or 2
	CgroupDriver  string       `json:"cgroup_driver"`
	LiveRestore   bool         `json:"live_restore"`
	Root          string       `json:"root"` // directory of its images and containers
	Containers    int          `json:"containers"`
	Running       int          `json:"running"`
	Limits        EngineLimits `json:"limits"`
	Warnings      []string     `json:"warnings"` // the engine's own
}

// EngineLimits names the limits of containers that the engine can enforce.
type EngineLimits struct {
	Memory bool `json:"memory"`
	Swap   bool `json:"swap"`
	CPU    bool `json:"cpu"`
	Pids   bool `json:"pids"`
}
