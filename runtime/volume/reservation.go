package volume

// reservation is the space that one operation has reserved. It is not safe for
// concurrent use.
type reservation struct {
	quota     *quota
	space     *Space
	credit    int64 // bytes that the operation will free when it completes
	reserved  int64
	unwritten int64 // part of reserved that may not be on disk yet
}

// newReservation returns an empty reservation. A nil space is unlimited. credit is
// how many bytes the operation frees when it completes.
func newReservation(q *quota, space *Space, credit int64) *reservation {
	return &reservation{quota: q, space: space, credit: credit}
}

// Bytes returns how many bytes are reserved.
func (r *reservation) Bytes() int64 { return r.reserved }

// Grow reserves n more bytes before they are written. It returns v1.ErrSizeLimit
// if the volume has no space for them, and v1.ErrDiskFull if the host has none.
// Bytes that were reserved before must have been written.
func (r *reservation) Grow(n int64) error {
	if err := r.quota.reserve(n-r.credit, n); err != nil {
		return err
	}
	r.reserved += n
	written := r.unwritten
	r.unwritten = 0
	if err := r.space.reserve(n, written); err != nil {
		return err
	}
	r.unwritten = n
	return nil
}

// Release returns the space. The caller adds what was created to the quota.
func (r *reservation) Release() {
	r.space.release(r.unwritten)
	r.quota.release(r.reserved)
	r.unwritten, r.reserved = 0, 0
}
