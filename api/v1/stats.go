package v1

// Stats is the current usage of a container, in the words of the interface. Counters
// grow from the start of its run.
type Stats struct {
	CPUUsage    float64 `json:"cpu_usage"`    // percent of one core
	MemoryUsage int64   `json:"memory_usage"` // bytes, without cache
	MemoryLimit int64   `json:"memory_limit"` // bytes; the host's memory if there is none
	NetworkRx   int64   `json:"network_rx"`   // bytes
	NetworkTx   int64   `json:"network_tx"`
	BlockRead   int64   `json:"block_read"`
	BlockWrite  int64   `json:"block_write"`
	Pids        int64   `json:"pids"`       // processes and threads
	Uptime      int64   `json:"uptime"`     // seconds since the run began
	DiskUsage   *int64  `json:"disk_usage"` // bytes of the volume; null: not measured yet
}
