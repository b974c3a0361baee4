package cli

import (
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
)

func TestWait(t *testing.T) {
	t.Parallel()
	failed := strings.Replace(oneContainer, `"exit"`, `"failed"`, 1)
	unseen := strings.Replace(oneContainer, `"observed_generation":4`, `"observed_generation":3`, 1)
	f := newFakeAPI(t, map[string]string{"GET /containers/a": "200 " + failed, "GET /containers/b": "200 " + unseen})
	_, _, err := command(t, f.env(), "wait", "a", "running")
	require.ErrorContains(t, err, "a is failed: cannot\tstart, exit code 137")
	require.ErrorContains(t, waitTooLong(t, f, "b", "exit"), "b is not exit in time: it is exit", "the newest request is not observed yet")
	f.set("GET /readyz", `503 {"error":"Not ready: engine: does not answer"}`)
	err = waitTooLong(t, f, "b", "exit")
	require.ErrorContains(t, err, "; the daemon is not ready: engine: does not answer")
	require.Equal(t, exitTimeout, ExitCode(err))
	_, _, err = command(t, f.env(), "wait", "c", "exit")
	require.ErrorContains(t, err, "c: Route not found")
}

// TestWaitForEngine: a state that was last observed before the engine stopped answering is
// not reached: the container may have exited with the engine.
func TestWaitForEngine(t *testing.T) {
	t.Parallel()
	const conditions = `,"conditions":[{"type":"EngineReachable","status":"False","reason":"EngineUnreachable"}]`
	f := newFakeAPI(t, map[string]string{"GET /containers/mc": state("mc", "running", conditions), "GET /containers/old": state("old", "exit", conditions),
		"GET /readyz": `503 {"error":"Not ready: engine: does not answer"}`})
	require.EqualError(t, waitTooLong(t, f, "mc", "running"),
		"mc is not running in time: it is running as last observed; the daemon is not ready: engine: does not answer")
	_, errOut, err := command(t, f.env(), "wait", "old", "exit")
	require.NoError(t, err, "nothing runs that could start it")
	require.Empty(t, errOut)
	for timeout := 50 * time.Millisecond; !strings.Contains(errOut, "mc: running when the engine last answered\n"); timeout *= 2 {
		_, errOut, err = command(t, f.env(), "wait", "mc", "running", "--timeout", timeout.String())
		require.Error(t, err)
	}
}

// waitTooLong returns the error of a wait that times out after the daemon has returned the
// state of the container. On a busy host that may take longer than a short timeout.
func waitTooLong(t *testing.T, f *fakeAPI, args ...string) error {
	t.Helper()
	for timeout := 50 * time.Millisecond; ; timeout *= 2 {
		_, _, err := command(t, f.env(), append([]string{"wait", "--timeout", timeout.String()}, args...)...)
		require.Error(t, err)
		if !strings.Contains(err.Error(), "did not answer in time") {
			return err
		}
	}
}

// TestWaitBeforeFirstAnswer: the timeout ends while no request has been answered. The
// error names why the daemon is not ready all the same.
func TestWaitBeforeFirstAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"error":"Not ready: engine: does not answer"}`))
	}))
	defer server.Close()
	_, _, err := command(t, []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}, "wait", "mc", "running", "--timeout", "50ms")
	require.EqualError(t, err, "mc is not running in time: the daemon at "+server.URL+" did not answer in time; the daemon is not ready: engine: does not answer")
	require.Equal(t, exitTimeout, ExitCode(err))
}

// TestWaitForStartingDaemon: the daemon answers only after the command has begun.
func TestWaitForStartingDaemon(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t, map[string]string{"GET /containers/mc": `503 {"error":"The daemon is starting"}`})
	done := make(chan error, 1)
	var out, errOut syncBuffer
	go func() {
		root := NewRoot(Options{Environ: f.env()})
		root.SetArgs([]string{"wait", "mc", "running"})
		root.SetOut(&out)
		root.SetErr(&errOut)
		done <- root.ExecuteContext(t.Context())
	}()
	require.Eventually(t, func() bool { return len(f.seen()) > 1 }, time.Minute, time.Millisecond)
	require.Empty(t, done, "it waits on")
	f.set("GET /containers/mc", state("mc", "running", ""))
	require.NoError(t, <-done)
	require.Equal(t, "mc is running\n", out.String())
	require.Contains(t, errOut.String(), "mc: The daemon is starting\n")
}

// TestWaitForAbsentDaemon: nothing listens, until the timeout.
func TestWaitForAbsentDaemon(t *testing.T) {
	t.Parallel()
	var errOut string
	var err error
	for timeout := time.Second; errOut == ""; timeout *= 2 { // on a busy host it may end before the first request does
		_, errOut, err = command(t, []string{"BERTH_URL=http://127.0.0.1:1", "BERTH_TOKEN=" + clientToken}, "wait", "mc", "running", "--timeout", timeout.String())
	}
	require.ErrorContains(t, err, "mc is not running in time: ")
	require.Equal(t, exitUnavailable, ExitCode(err))
	require.Contains(t, errOut, "mc: no daemon answers at http://127.0.0.1:1")
	for _, wrong := range []error{&url.Error{Err: x509.UnknownAuthorityError{}}, &net.OpError{Op: "dial", Err: &net.DNSError{}}, &client.Error{Status: 401}} {
		require.False(t, transient(wrong), "%v", wrong)
	}
	require.True(t, transient(&url.Error{Err: io.EOF}))
}

// TestWaitTimeoutDuringRequest lets the timeout end while a request is in flight.
func TestWaitTimeoutDuringRequest(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" && requests.Add(1) > 1 {
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte(oneContainer))
	}))
	defer server.Close()
	_, _, err := command(t, []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}, "wait", "mc", "running", "--timeout", "500ms")
	require.ErrorContains(t, err, "mc is not running in time: it is exit")
	_, _, err = command(t, []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}, "wait", "mc", "running", "--timeout", "50ms")
	require.ErrorContains(t, err, "did not answer in time")
}

// state returns a container in a state that the daemon has observed.
func state(id, phase, more string) string {
	return `200 {"internal_id":"` + id + `","state":"` + phase + `"` + more + `}`
}

func TestWaitForSeveral(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t, map[string]string{"GET /containers/a": state("a", "running", ""), "GET /containers/b": state("b", "failed", `,"exit_code":7`),
		"GET /containers/c": state("c", "running", "")})
	out, _, err := command(t, f.env(), "wait", "a", "b", "nope", "c", "a", "running")
	require.EqualError(t, err, "b is failed: exit code 7\nnope: Route not found")
	require.Equal(t, "a is running\nc is running\n", out)
	require.Equal(t, exitError, ExitCode(err))
	out, _, err = command(t, f.env(), "wait", "nope", "deleted", "-o", "json")
	require.NoError(t, err)
	require.JSONEq(t, `{"internal_id":"nope","state":"deleted"}`, out)
}

// TestVerbWaits requests what a verb does, and waits for the goal of that verb.
func TestVerbWaits(t *testing.T) {
	t.Parallel()
	for verb, x := range map[string]struct{ request, reached, goal string }{
		"start":     {"POST /containers/mc/start", "running", "running"},
		"restart":   {"POST /containers/mc/restart", "running", "running"},
		"stop":      {"POST /containers/mc/stop", "exit", "stopped"},
		"kill":      {"POST /containers/mc/kill", "ready", "stopped"},
		"reinstall": {"POST /containers/mc/reinstall", "ready", "ready"},
	} {
		f := newFakeAPI(t, map[string]string{x.request: `200 {"message":"initiated"}`, "GET /containers/mc": state("mc", "stopping", "")})
		done := make(chan error, 1)
		var out, errOut syncBuffer
		go func() {
			root := NewRoot(Options{Environ: f.env()})
			root.SetArgs([]string{verb, "mc", "nope", "--wait"})
			root.SetOut(&out)
			root.SetErr(&errOut)
			done <- root.ExecuteContext(t.Context())
		}()
		require.Eventually(t, func() bool { return strings.Contains(errOut.String(), "mc: stopping\n") }, time.Minute, time.Millisecond)
		require.Empty(t, out.String(), "it waits")
		f.set("GET /containers/mc", state("mc", x.reached, `,"generation":2,"observed_generation":1`))
		require.Eventually(t, func() bool { return strings.Contains(errOut.String(), "mc: "+x.reached+"\n") }, time.Minute, time.Millisecond)
		f.set("GET /containers/mc", state("mc", x.reached, `,"generation":2,"observed_generation":2`))
		err := <-done
		require.EqualError(t, err, verb+" nope: Route not found")
		require.Equal(t, "mc is "+x.goal+"\n", out.String())
	}
}

// TestWaitGivesUp waits for a container that exits, and is not started again.
func TestWaitGivesUp(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t, map[string]string{"POST /containers/mc/start": `200 {"message":"ok"}`, "GET /containers/mc": state("mc", "exit", `,"exit_code":9`)})
	done := make(chan error, 1)
	var errOut syncBuffer
	go func() {
		root := NewRoot(Options{Environ: f.env()})
		root.SetArgs([]string{"start", "mc", "--wait"})
		root.SetErr(&errOut)
		done <- root.ExecuteContext(t.Context())
	}()
	for _, next := range []string{state("mc", "exit", `,"exit_code":9`), state("mc", "starting", ""),
		state("mc", "exit", `,"exit_code":3,"next_retry_at":"2026-01-02T03:04:05Z"`), state("mc", "exit", `,"exit_code":3,"message":"no space"`)} {
		seen := len(f.seen())
		f.set("GET /containers/mc", next)
		require.Eventually(t, func() bool { return len(f.seen()) > seen+2 }, time.Minute, time.Millisecond)
		require.Empty(t, done, "it waits on: %s", next)
	}
	f.set("GET /containers/mc", state("mc", "exit", `,"exit_code":3`))
	require.EqualError(t, <-done, "mc is exit: exit code 3")
}

func TestDeleteWaits(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"DELETE /containers/mc": `200 {"message":"going"}`})
	out, _, err := command(t, f.env(), "rm", "mc", "--wait", "--timeout", "1m")
	require.NoError(t, err)
	require.Equal(t, "mc is deleted\n", out)
	_, _, err = command(t, f.env(), "rm", "mc", "--timeout", "1m")
	require.EqualError(t, err, "--timeout needs --wait")
	require.Equal(t, exitUsage, ExitCode(err))
}

// TestProgressLines prints each change once where there is no terminal.
func TestProgressLines(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t, map[string]string{"GET /containers/mc": state("mc", "installing", `,"message":"pulls\tthe image"`)})
	_, errOut, err := command(t, f.env(), "wait", "mc", "running", "--timeout", "700ms")
	require.EqualError(t, err, "mc is not running in time: it is installing, pulls\tthe image")
	require.Equal(t, "mc: installing, pulls the image\n", errOut)
}

// TestWaitForHangingDaemon: a request that the client has given up is made again.
func TestWaitForHangingDaemon(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	c := http.Client{Timeout: 20 * time.Millisecond}
	_, err := c.Get(server.URL)
	require.Error(t, err)
	require.True(t, transient(err))
}
