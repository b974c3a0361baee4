package edge

import (
	"io"
	"time"
)

// The minimum rate of a streamed body: leastRate bytes per paceWindow, or 2 KiB/s.
const (
	paceWindow = 30 * time.Second
	leastRate  = 60 << 10 // bytes
)

// paced reads from r and returns errTimeout if the client sends less than
// leastRate. Without it a client that sends a byte now and then could hold a
// connection, a file descriptor and the space of an upload for ever. Only time
// spent in Read counts, so that a slow disk is not held against the client.
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
