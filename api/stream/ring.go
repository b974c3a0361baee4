package stream

import (
	"sort"
	"sync/atomic"
)

// ring is the newest fragments of a console that a cursor has not read yet. Lines
// that are pushed without fragments empty it, so there is no gap in it.
type ring struct {
	list []*fragment
	size int           // bytes, approximately
	max  int           // of size
	all  *atomic.Int64 // sizes of all rings of a hub
}

// push adds lines that were written between two positions. Read is the number of
// lines that every cursor has read.
func (r *ring) push(b *builder, from, end position, read int64) {
	if len(b.done) == 0 { // there was no listener yet
		r.clear()
	}
	for _, f := range b.done {
		f.from, f.to = f.from.behind(from, end), f.to.behind(from, end)
		r.list = append(r.list, f)
		r.grow(f.cost())
	}
	drop := 0
	for drop < len(r.list)-1 && (r.tooLarge() || r.list[drop].to.line <= read) {
		r.grow(-r.list[drop].cost())
		r.list[drop] = nil
		drop++
	}
	r.list = r.list[drop:]
}

// tooLarge reports whether the ring has more than its quota.
func (r *ring) tooLarge() bool {
	return r.size > r.max || (r.size > minRing && r.all.Load() > allRings)
}

func (r *ring) grow(bytes int) {
	r.size += bytes
	r.all.Add(int64(bytes))
}

func (r *ring) clear() {
	r.grow(-r.size)
	r.list = nil
}

// from appends the fragments from a position on, up to a size in bytes. It returns
// false if the ring does not have that position.
func (r *ring) from(at position, size int, to []*fragment) ([]*fragment, bool) {
	i := sort.Search(len(r.list), func(i int) bool { return r.list[i].from.line >= at.line })
	if i == len(r.list) || !r.list[i].from.same(at) {
		return to, false
	}
	for _, f := range r.list[i:] {
		to = append(to, f)
		if size -= len(f.text); size <= 0 {
			break
		}
	}
	return to, true
}
