package v1

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"math/bits"
)

// PortSet is a set of ports, 0 to 65535. Its zero value is empty. In JSON it is
// a base64 string of 8 KiB of bits, cut after the last one that is set.
type PortSet struct{ words []uint64 }

// Has reports whether port is in the set.
func (s PortSet) Has(port int) bool {
	w := port >> 6
	return port >= 0 && w < len(s.words) && s.words[w]&(1<<(port&63)) != 0
}

// Add adds port. Ports outside 0 to 65535 are ignored.
func (s *PortSet) Add(port int) {
	if port < 0 || port > 65535 {
		return
	}
	for len(s.words) <= port>>6 {
		s.words = append(s.words, 0)
	}
	s.words[port>>6] |= 1 << (port & 63)
}

// Remove removes port.
func (s *PortSet) Remove(port int) {
	if s.Has(port) {
		s.words[port>>6] &^= 1 << (port & 63)
	}
}

// Len returns the number of ports.
func (s PortSet) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// All yields every port, lowest first.
func (s PortSet) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(i<<6 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// Without returns the ports of s that are not in o.
func (s PortSet) Without(o PortSet) PortSet {
	left := s.Clone()
	for i := range min(len(left.words), len(o.words)) {
		left.words[i] &^= o.words[i]
	}
	return left
}

// At returns the port with n lower ports in the set, or -1 if there is none.
func (s PortSet) At(n int) int {
	for i, w := range s.words {
		if count := bits.OnesCount64(w); n >= count {
			n -= count
			continue
		}
		for range n {
			w &= w - 1
		}
		return i<<6 + bits.TrailingZeros64(w)
	}
	return -1
}

// Equal reports whether both sets hold the same ports.
func (s PortSet) Equal(o PortSet) bool {
	for i := range max(len(s.words), len(o.words)) {
		var a, b uint64
		if i < len(s.words) {
			a = s.words[i]
		}
		if i < len(o.words) {
			b = o.words[i]
		}
		if a != b {
			return false
		}
	}
	return true
}

// Clone returns a copy of s.
func (s PortSet) Clone() PortSet { return PortSet{append([]uint64(nil), s.words...)} }

// MarshalJSON writes the bits, little-endian, without trailing zeros.
func (s PortSet) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, len(s.words)*8)
	for _, w := range s.words {
		for i := range 8 {
			b = append(b, byte(w>>(8*i)))
		}
	}
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return json.Marshal(base64.StdEncoding.EncodeToString(b))
}

// UnmarshalJSON reads the form that MarshalJSON writes.
func (s *PortSet) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) > 8192 {
		return fmt.Errorf("port set: %d bytes of bits: %v", len(b), err)
	}
	s.words = make([]uint64, (len(b)+7)/8)
	for i, v := range b {
		s.words[i/8] |= uint64(v) << (8 * (i % 8))
	}
	return nil
}
