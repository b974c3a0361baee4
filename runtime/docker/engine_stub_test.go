package docker

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"berth/runtime"
)

var mc = runtime.Name{ID: "mc", Role: runtime.Server}

func message404(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprintf(w, `{"message":%q}`, text)
}

// A broken proxy in front of the engine must not look like a host without
// containers.
func TestNotFoundNeedsEngineMessage(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"404":         http.NotFound,
		"404 as json": func(w http.ResponseWriter, _ *http.Request) { message404(w, "page not found") },
		"500":         func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "No", http.StatusInternalServerError) },
		"empty":       func(http.ResponseWriter, *http.Request) {},
		"garbage":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "\x00<html>") },
		"object":      func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
		"reset":       func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"list is broken": func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/containers/json") {
				http.NotFound(w, r)
				return
			}
			message404(w, "No such container: x")
		},
	} {
		e := stub(t, answer)
		_, err := e.Inspect(t.Context(), mc)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, runtime.ErrNotFound, name)
		for _, act := range []func(context.Context, runtime.Name) error{e.Start, e.Kill, e.Remove} {
			err = act(t.Context(), mc)
			require.Error(t, err, name)
			require.NotErrorIs(t, err, runtime.ErrNotFound, name)
		}
		_, err = e.ImageID(t.Context(), "x")
		require.Error(t, err, name)
	}
}

func TestUnreachableEngine(t *testing.T) {
	e, err := New(Config{Host: "unix://" + filepath.Join(t.TempDir(), "none"), StoreID: "s"}, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.ErrorIs(t, e.Ping(t.Context()), runtime.ErrUnavailable)
	require.ErrorIs(t, e.Ready(t.Context()), runtime.ErrUnavailable)
	_, err = e.Inspect(t.Context(), mc)
	require.ErrorIs(t, err, runtime.ErrUnavailable)
	_, err = e.Create(t.Context(), runtime.Spec{Name: mc})
	require.ErrorIs(t, err, runtime.ErrUnavailable)
	require.ErrorIs(t, e.Watch(t.Context(), func([]runtime.Found) {}, func(runtime.Name) {}), runtime.ErrUnavailable)
	require.ErrorIs(t, e.Pull(t.Context(), "x:1", runtime.Auth{}, nil), runtime.ErrUnavailable)
	require.ErrorIs(t, e.Logs(t.Context(), runtime.Target{ContainerID: "x"}, time.Time{}, nil), runtime.ErrUnavailable)
	require.ErrorIs(t, e.Input(t.Context(), "x", nil), runtime.ErrUnavailable)
}

// describeMC is the engine's answer to an inspect of a running server mc.
const describeMC = `{"Id":"cid","State":{"Running":true},"Config":{"Labels":{"io.berth.store":"s","io.berth.container":"mc","io.berth.role":"server"}}}`

// Everything that starts and pulls hangs; inspects and kills are answered.
func TestCallsDoNotWaitForEachOther(t *testing.T) {
	var hanging atomic.Int64
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/images/create"), strings.HasSuffix(r.URL.Path, "/start"):
			hanging.Add(1)
			hang(r)
		case strings.HasSuffix(r.URL.Path, "/json"):
			fmt.Fprint(w, describeMC)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 100)
	for range 20 {
		go func() { done <- e.Start(ctx, mc) }()
		go func() { done <- e.Pull(ctx, "x:1", runtime.Auth{}, nil) }()
	}
	require.Eventually(t, func() bool { return hanging.Load() == 40 }, time.Minute, time.Millisecond, "all pulls and starts")
	soon, tooLate := context.WithTimeout(t.Context(), time.Minute)
	defer tooLate()
	_, err := e.Inspect(soon, mc)
	require.NoError(t, err)
	require.NoError(t, e.Kill(soon, mc))
	require.NoError(t, e.Signal(soon, mc, "TERM"))
	require.Len(t, done, 0)
	cancel()
	for range 40 {
		require.ErrorIs(t, <-done, context.Canceled)
	}
}

func TestCallDeadline(t *testing.T) {
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/json") {
			fmt.Fprint(w, describeMC)
			return
		}
		hang(r)
	})
	short := opInspect
	short.limit = time.Millisecond
	err := e.calls.do(t.Context(), short, "mc", func(ctx context.Context) error {
		_, err := e.conn.client().ContainerTop(ctx, "mc", nil)
		return err
	})
	require.ErrorIs(t, err, runtime.ErrUnavailable)
	for _, op := range operations {
		require.True(t, op.limit > 0 || op.name == "pull", op.name)
	}
	// An attach that is never answered keeps to it as well.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.Error(t, e.Input(ctx, "cid", []byte("x")))
}

func TestReadyNeedsAnsweredInspects(t *testing.T) {
	var hangs atomic.Bool
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, describeMC)
	})
	require.NoError(t, e.Ready(t.Context()), "before the first inspect, a ping is enough")
	hangs.Store(true)
	_, err := e.Inspect(t.Context(), mc)
	require.ErrorIs(t, err, runtime.ErrUnavailable)
	require.NoError(t, e.Ping(t.Context()))
	require.ErrorIs(t, e.Ready(t.Context()), runtime.ErrUnavailable)
	hangs.Store(false)
	_, err = e.Inspect(t.Context(), mc)
	require.NoError(t, err)
	require.NoError(t, e.Ready(t.Context()))
}

func TestPullStalls(t *testing.T) {
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range 5 {
			fmt.Fprintf(w, `{"id":"l","status":"Downloading","progressDetail":{"current":%d,"total":10}}`, i)
			w.(http.Flusher).Flush()
		}
		for { // waiting for the next try is no progress
			if _, err := fmt.Fprint(w, `{"id":"l","status":"Retrying in 1 second"}`); err != nil || r.Context().Err() != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	})
	e.cfg.StallLimit = time.Second
	var last runtime.Progress
	err := e.Pull(t.Context(), "x:1", runtime.Auth{}, func(p runtime.Progress) { last = p })
	require.ErrorIs(t, err, runtime.ErrStalled)
	require.Equal(t, runtime.Progress{Layers: 1, Current: 4, Total: 10}, last)
}

func TestPullStreamBreaks(t *testing.T) {
	e := stub(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"Pulling from x","id":"1"}`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	require.ErrorIs(t, e.Pull(t.Context(), "x:1", runtime.Auth{}, nil), runtime.ErrUnavailable)
}

func TestMetricsStartAtZero(t *testing.T) {
	r := prometheus.NewRegistry()
	newMetrics(r)
	count, err := testutil.GatherAndCount(r, "berth_engine_request_duration_seconds")
	require.NoError(t, err)
	require.Equal(t, 3*len(operations), count)
}

func TestStreamsLeakNothing(t *testing.T) {
	clean := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, clean) })
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/containers/json"):
			fmt.Fprint(w, "[]")
		case strings.HasSuffix(r.URL.Path, "/json"):
			fmt.Fprint(w, describeMC)
		default:
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			hang(r)
		}
	})
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		listed, ended := make(chan struct{}), make(chan error, 2)
		go func() {
			ended <- e.Watch(ctx, func([]runtime.Found) { close(listed) }, func(runtime.Name) {})
		}()
		go func() {
			ended <- e.Logs(ctx, runtime.Target{ContainerID: "cid"}, time.Time{}, func(runtime.Line) error { return nil })
		}()
		<-listed
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.ErrorIs(t, <-ended, context.Canceled)
	}
}

// The engine may receive the kernel's report after the exit. It then sends only an event.
func TestLateOOMEvent(t *testing.T) {
	const attributes = `"Actor":{"ID":"cid","Attributes":{"io.berth.store":"s","io.berth.container":"mc","io.berth.role":"server"}}`
	started := time.Unix(1000, 0).UTC()
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/containers/json"):
			fmt.Fprint(w, "[]")
		case strings.HasSuffix(r.URL.Path, "/events"):
			fmt.Fprintf(w, `{"Type":"container","Action":"oom",%s,"timeNano":%d}`, attributes, time.Unix(1001, 0).UnixNano())
			w.(http.Flusher).Flush()
			hang(r)
		default:
			state := fmt.Sprintf(`"State":{"Running":false,"ExitCode":137,"StartedAt":%q}`, started.Format(time.RFC3339Nano))
			fmt.Fprint(w, strings.Replace(describeMC, `"State":{"Running":true}`, state, 1))
		}
	})
	got, err := e.Inspect(t.Context(), mc)
	require.NoError(t, err)
	require.False(t, got.OOMKilled)
	ctx, cancel := context.WithCancel(t.Context())
	notified, ended := make(chan runtime.Name, 1), make(chan error, 1)
	go func() {
		ended <- e.Watch(ctx, func([]runtime.Found) {}, func(n runtime.Name) { notified <- n })
	}()
	require.Equal(t, mc, <-notified)
	got, err = e.Inspect(t.Context(), mc)
	require.NoError(t, err)
	require.True(t, got.OOMKilled)
	started = time.Unix(1002, 0).UTC()
	got, err = e.Inspect(t.Context(), mc)
	require.NoError(t, err)
	require.False(t, got.OOMKilled, "that was the run before")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// An engine that shuts down, or a proxy before it, ends its streams without an error.
func TestLogStreamEndsBeforeRun(t *testing.T) {
	var over atomic.Bool
	read := 0
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/logs"):
			read++
		case over.Load():
			fmt.Fprint(w, strings.Replace(describeMC, "true", "false", 1))
		default:
			fmt.Fprint(w, strings.Replace(describeMC, `true`, `true,"StartedAt":"2026-01-02T03:04:05Z"`, 1))
		}
	})
	run := runtime.Target{ContainerID: "cid", StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	logs := func() error {
		return e.Logs(t.Context(), run, time.Time{}, func(runtime.Line) error { return nil })
	}
	require.ErrorIs(t, logs(), runtime.ErrUnavailable)
	require.Equal(t, 1, read)
	over.Store(true)
	require.NoError(t, logs())
	require.Equal(t, 2, read)
}
