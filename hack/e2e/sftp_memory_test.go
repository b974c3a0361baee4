package e2e_test

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	client "github.com/pkg/sftp"
	"github.com/stretchr/testify/require"
)

// TestSFTPSessionMemory transfers files in many sessions at once, and measures what each
// costs the daemon at most.
func TestSFTPSessionMemory(t *testing.T) {
	t.Parallel()
	n := newSFTPNode(t)
	plantLarge(t, filepath.Join(n.dir, "file"), 16<<20)
	const sessions = 32
	var open []*client.Client
	for range sessions {
		c, err := n.dial(n.volume, n.Token)
		require.NoError(t, err)
		open = append(open, c)
	}
	before := resident(t, n.Pid())
	var all sync.WaitGroup
	for i, c := range open {
		all.Go(func() {
			if i%2 == 0 {
				download(c)
				return
			}
			upload(c, "up"+strconv.Itoa(i))
		})
	}
	stop := make(chan struct{})
	go func() { all.Wait(); close(stop) }()
	most := before
	for done := false; !done; {
		select {
		case <-stop:
			done = true
		case <-time.After(20 * time.Millisecond):
		}
		most = max(most, resident(t, n.Pid()))
	}
	each := (most - before) / sessions
	t.Logf("%d KiB for each session", each>>10)
	require.Less(t, each, int64(5<<20))
}

func download(c *client.Client) {
	f, err := c.Open("file")
	if err == nil {
		_, _ = f.WriteTo(io.Discard)
		f.Close()
	}
}

func upload(c *client.Client, name string) {
	f, err := c.OpenFile(name, os.O_WRONLY|os.O_CREATE)
	if err == nil {
		_, _ = f.ReadFrom(io.LimitReader(zeros{}, 16<<20))
		f.Close()
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
