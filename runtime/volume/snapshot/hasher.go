package snapshot

import (
	"crypto/sha256"
	"hash"
)

// hashAside is how many bytes are hashed by another goroutine. Fewer are not worth it.
const hashAside = 64 << 10

// hasher computes a SHA-256 while its user does something else with the same bytes. They
// must not change until the next call. close must be called.
type hasher struct {
	sum     hash.Hash
	work    chan []byte
	done    chan struct{}
	pending bool // a call of done is due
}

func newHasher() *hasher {
	h := &hasher{sum: sha256.New(), work: make(chan []byte), done: make(chan struct{})}
	go func() {
		defer close(h.done)
		for b := range h.work {
			h.sum.Write(b)
			h.done <- struct{}{}
		}
	}()
	return h
}

// add begins to hash b.
func (h *hasher) add(b []byte) {
	h.wait()
	if len(b) < hashAside {
		h.sum.Write(b)
		return
	}
	h.work <- b
	h.pending = true
}

// wait returns when the bytes of the last add may change.
func (h *hasher) wait() {
	if h.pending {
		<-h.done
		h.pending = false
	}
}

// take returns the checksum, and begins another one.
func (h *hasher) take() (sum [32]byte) {
	h.wait()
	h.sum.Sum(sum[:0])
	h.sum.Reset()
	return sum
}

// close ends the goroutine.
func (h *hasher) close() {
	h.wait()
	close(h.work)
	<-h.done
}
