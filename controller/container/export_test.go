package container

// ForgetMemory drops what a restart of berth drops.
func (r *Reconciler) ForgetMemory() {
	r.timers.began = nil
	r.instances.instance = ""
}
