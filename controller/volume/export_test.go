package volume

// Reported returns the number of volumes that the reconciler keeps something of.
func (r *Reconciler) Reported() (n int) {
	r.reported.Range(func(any, any) bool { n++; return true })
	return n
}
