package container

// ForgetMemory drops what a restart of berth drops.
func (r *Reconciler) ForgetMemory() {
	r.timers.began = nil
	r.instances.instance = ""
}

// Take takes the permit of container id, and Release returns it.
func (s *Semaphore) Take(id string) bool { return s.acquire(id, false) }

func (s *Semaphore) Release() { s.release() }

// StopSignal is stopSignal.
var StopSignal = stopSignal

// Free returns the number of free permits.
func (s *Semaphore) Free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// RoomWait is roomWait.
const RoomWait = roomWait
