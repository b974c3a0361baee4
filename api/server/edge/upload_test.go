package edge

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// slow is a body whose reads take a time.
type slow struct {
	io.Reader
	takes time.Duration
}

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(s.takes)
	return s.Reader.Read(p)
}

// TestSlowUpload: each chunk has its time, which only the client uses up.
func TestSlowUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deadline time.Duration
		body := inTime(slow{bytes.NewReader(make([]byte, 3*chunk)), time.Second}, chunkTimeout, func(d time.Duration) error {
			deadline = d
			return nil
		})
		read := func(n int) {
			_, err := io.ReadFull(body, make([]byte, n))
			require.NoError(t, err)
		}
		read(1)
		require.Equal(t, chunkTimeout, deadline)
		read(1)
		require.Equal(t, chunkTimeout-time.Second, deadline, "a byte is no chunk")
		time.Sleep(time.Hour) // the reader's
		read(chunk - 2)
		require.Equal(t, chunkTimeout-2*time.Second, deadline)
		read(chunk)
		require.Equal(t, chunkTimeout, deadline)
		read(chunk)
		require.Equal(t, chunkTimeout, deadline)
	})
}
