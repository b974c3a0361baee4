package docker

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

// Once a container's id is cached, each operation sends one request.
func TestOperationsCostOneRequest(t *testing.T) {
	var requests atomic.Int64
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		switch {
		case strings.HasSuffix(r.URL.Path, "/info"):
			fmt.Fprint(w, `{"NCPU":2,"SecurityOptions":["name=seccomp,profile=default"]}`)
		case strings.HasSuffix(r.URL.Path, "/containers/json"):
			fmt.Fprint(w, "[]")
		case strings.HasSuffix(r.URL.Path, "/networks/berth"):
			fmt.Fprint(w, `{"Options":{"com.docker.network.bridge.enable_icc":"false"}}`)
		case strings.HasSuffix(r.URL.Path, "/create"):
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"Id":"cid"}`)
		case strings.HasSuffix(r.URL.Path, "/absent/json"), strings.HasSuffix(r.URL.Path, "-absent/json"):
			message404(w, "No such container: x")
		case strings.HasSuffix(r.URL.Path, "/json"):
			fmt.Fprint(w, describeMC)
		case strings.HasSuffix(r.URL.Path, "/update"):
			fmt.Fprint(w, "{}")
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	e.shared.Store(true) // it is asked once for each engine
	ctx := t.Context()
	cost := func(do func() error) int64 {
		before := requests.Load()
		require.NoError(t, do())
		return requests.Load() - before
	}
	create := func() error {
		_, err := e.Create(ctx, runtime.Spec{Name: mc, Command: []string{"sleep"}, Workdir: "/"})
		return err
	}
	inspect := func() error { _, err := e.Inspect(ctx, mc); return err }
	absent := func() error {
		_, err := e.Inspect(ctx, runtime.Name{ID: "absent", Role: runtime.Install})
		require.ErrorIs(t, err, runtime.ErrNotFound)
		return nil
	}
	require.EqualValues(t, 3, cost(create), "the first looks for the network and for the host")
	require.EqualValues(t, 1, cost(create))
	require.EqualValues(t, 1, cost(func() error { return e.Start(ctx, mc) }))
	require.EqualValues(t, 1, cost(inspect))
	require.EqualValues(t, 1, cost(func() error { return e.Signal(ctx, mc, "TERM") }))
	require.EqualValues(t, 1, cost(func() error { return e.Update(ctx, mc, runtime.Live{CPU: 1}) }))
	require.EqualValues(t, 1, cost(func() error { return e.Kill(ctx, mc) }))
	require.EqualValues(t, 1, cost(func() error { return e.Remove(ctx, mc) }))
	require.EqualValues(t, 2, cost(absent), "by name and by labels")
	require.EqualValues(t, 1, cost(absent), "by name: the list has cached all ids")
}
