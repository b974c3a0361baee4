package runtime

// EngineInfo is what an engine reports about itself and its host.
type EngineInfo struct {
	Version       string // such as 28.5.2
	API           string // highest version of its API
	Kernel        string
	OS            string
	StorageDriver string
	CgroupVersion string // 1 or 2
	LiveRestore   bool
	CPUs          int    // of its host, or of all its machines
	Memory        int64  // bytes, of all its machines; 0: that of its host
	Root          string // directory of its images and containers
	Limits        EngineLimits
	StatsError    string // why it has no statistics of containers; empty: it has
}

// EngineLimits names the limits of containers that the engine can enforce.
type EngineLimits struct {
	Memory, Swap, CPU, Pids bool
}
