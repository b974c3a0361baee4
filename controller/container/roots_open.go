package container

import "time"

// openPeriod is the longest time between two readings of the open files of a container that
// has none without a name. To read them takes longer than the rest of a measurement. A
// container that writes to such files takes space of the disk.
const openPeriod = time.Minute

// openRead is what the last reading of a container's open files has found.
type openRead struct {
	at   time.Time
	free int64 // bytes of the engine's disk, before
	none bool  // none was without a name
}

// noneOpen returns the engine's id of a container whose open files need not be read again;
// empty if they must be.
func (r *Roots) noneOpen(id string) string {
	r.mu.Lock()
	read, u := r.read[id], r.used[id]
	r.mu.Unlock()
	if !read.none || read.free == 0 || time.Since(read.at) >= openPeriod || r.lost(read.free) {
		return ""
	}
	return u.ContainerID
}
