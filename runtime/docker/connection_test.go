package docker

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/versions"
	"github.com/stretchr/testify/require"

	"berth/runtime"
)

// span is the API versions that an engine supports.
type span struct{ low, high string }

// replaceable is an engine that another version can take the place of.
func replaceable(t *testing.T) (*Engine, *atomic.Pointer[span]) {
	t.Helper()
	var now atomic.Pointer[span]
	e := stubOf(t, func(w http.ResponseWriter, r *http.Request) {
		s := now.Load()
		w.Header().Set("Api-Version", s.high)
		version, _, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v"), "/")
		switch {
		case strings.HasSuffix(r.URL.Path, "/_ping"):
		case !found:
			http.NotFound(w, r)
		case versions.GreaterThan(version, s.high):
			refuse(w, fmt.Sprintf("client version %s is too new. Maximum supported API version is %s", version, s.high))
		case versions.LessThan(version, s.low):
			refuse(w, fmt.Sprintf("client version %s is too old. Minimum supported API version is %s, please upgrade your client to a newer version", version, s.low))
		case strings.HasSuffix(r.URL.Path, "/containers/json"):
			fmt.Fprint(w, "[]")
		case strings.HasSuffix(r.URL.Path, "/events"), strings.HasSuffix(r.URL.Path, "/logs"):
		default:
			fmt.Fprint(w, describeMC)
		}
	})
	return e, &now
}

func refuse(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"message":%q}`, text)
}

// Debian's engines, and one that no longer supports what the oldest does.
var replacements = map[string][2]span{
	"upgrade":         {{"1.12", "1.41"}, {"1.24", "1.51"}},
	"upgrade too far": {{"1.12", "1.41"}, {"1.44", "1.51"}},
	"downgrade":       {{"1.24", "1.51"}, {"1.12", "1.41"}},
	"newer than us":   {{"1.12", "1.41"}, {"1.44", "1.60"}},
}

// TestCallAfterEngineVersionChange: what an engine of another version refuses is worth
// another attempt, and succeeds after Watch has connected again.
func TestCallAfterEngineVersionChange(t *testing.T) {
	for name, r := range replacements {
		t.Run(name, func(t *testing.T) {
			e, now := replaceable(t)
			for _, s := range []span{r[0], r[1], r[0]} {
				now.Store(&s)
				if _, err := e.Inspect(t.Context(), mc); err != nil {
					require.ErrorIs(t, err, runtime.ErrUnavailable)
				}
				require.ErrorIs(t, e.Watch(t.Context(), func([]runtime.Found) {}, func(runtime.Name) {}), runtime.ErrUnavailable)
				_, err := e.Inspect(t.Context(), mc)
				require.NoError(t, err)
				require.NoError(t, e.Kill(t.Context(), mc))
				target := runtime.Target{ContainerID: "cid", Ended: true}
				require.NoError(t, e.Logs(t.Context(), target, time.Time{}, func(runtime.Line) error { return nil }))
			}
		})
	}
}

// A new stream of events uses the newest version, also where the one that was
// agreed on before still works.
func TestWatchNegotiatesAgain(t *testing.T) {
	for name, r := range replacements {
		t.Run(name, func(t *testing.T) {
			e, now := replaceable(t)
			for _, s := range []span{r[0], r[1], r[0]} {
				now.Store(&s)
				ctx, cancel := context.WithCancel(t.Context())
				listed := false
				err := e.Watch(ctx, func([]runtime.Found) { listed = true }, func(runtime.Name) {})
				cancel()
				require.ErrorIs(t, err, runtime.ErrUnavailable, "the stream of the stub ends at once")
				require.True(t, listed)
				require.Equal(t, min(s.high, "1.51"), e.conn.client().ClientVersion())
			}
		})
	}
}

func TestUnsupportedVersionIsUnavailable(t *testing.T) {
	var asked atomic.Int64
	e := stub(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		refuse(w, "client version 1.41 is too new. Maximum supported API version is 1.40")
	})
	_, err := e.Inspect(t.Context(), mc)
	require.ErrorIs(t, err, runtime.ErrUnavailable)
	require.EqualValues(t, 1, asked.Load())
}
