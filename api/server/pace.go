package server

import (
	"io"
	"time"
)

// The least rate of a body that is streamed: leastRate bytes in each paceWindow of
// the time that the daemon waits for the client. 2 KiB a second is below what a
// modem sends.
const (
	paceWindow = 30 * time.Second
	leastRate  = 60 << 10 // bytes
)

// paced reads from r, and is errTimeout once a client sends less than leastRate:
// one that sends a byte now and then would hold a connection, a handle and the
// space of an upload for ever. Only the time within Read counts: the time that the
// daemon takes is not the client's.
func paced(now func() time.Time, r io.Reader) io.Reader {
	var waited time.Duration
	var got int
	return readerFunc(func(p []byte) (int, error) {
		began := now()
		n, err := r.Read(p)
		got += n
		if waited += now().Sub(began); waited < paceWindow || err != nil {
			return n, err
		}
		if got < leastRate {
			return n, errTimeout
		}
		waited, got = 0, 0
		return n, nil
	})
}
