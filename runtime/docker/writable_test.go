package docker

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

// TestWritable: the layer as a directory, the files that the
// engine mounts, and the layer's size as the engine counts it.
func TestWritable(t *testing.T) {
	r := newRig(t)
	s := r.spec("writes", "dd if=/dev/zero of=/layer bs=1M count=2; dd if=/dev/zero bs=1M count=1 >> /etc/hosts; touch /done; sleep 1000")
	id := r.run(t, s)
	var size int64
	require.Eventually(t, func() bool {
		w, err := NewLayers(r.Engine).Writable(t.Context(), s.Name)
		require.NoError(t, err)
		require.Equal(t, id, w.ContainerID)
		size = w.Size
		for _, dir := range w.Dirs {
			if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
				size += sizeOf(t, filepath.Join(dir, "layer"))
			}
		}
		for _, file := range w.Files {
			size += sizeOf(t, file)
		}
		return size >= 3<<20
	}, 20*time.Second, 50*time.Millisecond, "%d bytes were found", size)
	size, err := NewLayers(r.Engine).size(t.Context(), s.Name, id)
	require.NoError(t, err)
	require.GreaterOrEqual(t, size, int64(2<<20))
}

// A measurement inspects nothing while a Watch would receive a change. An event, a stream
// that ends and a missing stream each cost an inspect, and so does one that overlaps an event.
func TestWritableIsKept(t *testing.T) {
	const event = `{"Type":"container","Action":"start","Actor":{"ID":"cid","Attributes":{"io.berth.store":"s","io.berth.container":"mc","io.berth.role":"server"}}}`
	upper := t.TempDir()
	var inspects atomic.Int64
	events, during := make(chan string), make(chan func(), 1)
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/containers/json"):
			fmt.Fprint(w, "[]")
		case strings.HasSuffix(r.URL.Path, "/events"):
			w.(http.Flusher).Flush()
			for text := range events {
				fmt.Fprint(w, text)
				w.(http.Flusher).Flush()
			}
		default:
			inspects.Add(1)
			select {
			case do := <-during:
				do()
			default:
			}
			fmt.Fprint(w, strings.Replace(describeMC, `{"Id"`, fmt.Sprintf(`{"GraphDriver":{"Data":{"UpperDir":%q}},"Id"`, upper), 1))
		}
	})
	cost := func() int64 {
		before := inspects.Load()
		for range 3 {
			w, err := NewLayers(e).Writable(t.Context(), mc)
			require.NoError(t, err)
			require.Equal(t, runtime.Writable{ContainerID: "cid", Dirs: []string{upper}}, w)
		}
		return inspects.Load() - before
	}
	require.EqualValues(t, 3, cost(), "nobody receives events")
	listed, notified, ended := make(chan bool, 1), make(chan runtime.Name), make(chan error, 1)
	go func() {
		ended <- e.Watch(t.Context(), func([]runtime.Found) { listed <- true }, func(n runtime.Name) { notified <- n })
	}()
	<-listed
	require.EqualValues(t, 1, cost())
	require.Zero(t, cost())
	change := func() { events <- event; require.Equal(t, mc, <-notified) }
	change()
	_, err := e.Inspect(t.Context(), mc)
	require.NoError(t, err)
	require.Zero(t, cost(), "any inspect shows it")
	change()
	during <- change
	require.EqualValues(t, 2, cost(), "the first inspect may be older than the event")
	close(events)
	require.Error(t, <-ended)
	require.EqualValues(t, 3, cost())
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Size()
}
