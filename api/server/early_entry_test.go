package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

// writtenFiles is a Files whose Write ends when a channel is closed.
type writtenFiles struct {
	Files
	read chan struct{} // receives a value when a Write has read its content
	end  chan error    // the result of the Write
}

func (f writtenFiles) Write(_ context.Context, _, _ string, content io.Reader) error {
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	f.read <- struct{}{}
	return <-f.end
}

// TestEntryDuringWrite: the entry of an upload is stored while the file is written, and
// has the status of the response in the end.
func TestEntryDuringWrite(t *testing.T) {
	held := writtenFiles{read: make(chan struct{}), end: make(chan error)}
	h := newHarnessWith(t, func(d *Deps) { d.Files = held })
	id := h.volume()
	for result, want := range map[error]string{nil: "OK", v1.ErrSizeLimit: "Request Entity Too Large"} {
		seen := uint64(len(audited(h, 0)))
		done := make(chan answer)
		go func() {
			done <- h.do(request{method: "PUT", path: "/volumes/" + id + "/files/content?path=f", body: "content",
				header: http.Header{"Content-Type": {"application/octet-stream"}}})
		}()
		<-held.read
		require.Eventually(t, func() bool { return len(audited(h, seen)) == 1 }, 20*time.Second, time.Millisecond)
		require.Equal(t, []string{"file.write|" + id + "/f|OK"}, audited(h, seen))
		held.end <- result
		<-done
		require.Equal(t, []string{"file.write|" + id + "/f|" + want}, audited(h, seen))
	}
}

// TestEarlyEntryWithKey: a request with an idempotency key stores nothing before its
// file is written: a repetition after a crash must not get the outcome of a file that
// does not exist.
func TestEarlyEntryWithKey(t *testing.T) {
	h := newHarness(t)
	for _, key := range []bool{false, true} {
		r := store.NewRequest(h.store, v1.Controller(), v1.Audit{Action: "file.write"})
		if key {
			r.Outcome = &store.Outcome{}
		}
		e := earlyEntry{content: strings.NewReader("content"), request: r}
		_, err := io.ReadAll(&e)
		require.NoError(t, err)
		require.Equal(t, key, e.stored == nil)
		e.wait()
		require.Len(t, audited(h, 0), 1, "that without a key")
	}
}
