package e2e_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// failure is one that an operator has to understand from the metrics alone, from the
// log alone, from berth ps alone, and from the events alone.
type failure struct {
	cause  func(t *testing.T, b *berthtest.Berth, id string)
	series string // an expression of the series, which alerts.yaml selects
	line   string // an expression of a line of the log
	row    string // an expression of the end of the row of berth ps
	event  string // an expression of an event's data and reason
}

func unready(reason string) string {
	return `berth_container_unready_seconds\{container="%s",reason="` + reason + `"\} `
}

func changed(from, to, reason string) string {
	return fmt.Sprintf(`"container changed its state","container":"%%s","from":"%s","to":"%s",.*"reason":"%s"`, from, to, reason)
}

func started(spec berthtest.Spec) func(*testing.T, *berthtest.Berth, string) {
	return func(t *testing.T, b *berthtest.Berth, id string) {
		b.Made(t, id, spec)
		b.Verb(t, id, "start")
	}
}

var visibleFailures = map[string]failure{
	"image-missing": {func(t *testing.T, b *berthtest.Berth, id string) {
		registry := enginetest.StartRegistry(t)
		b.Made(t, id, nil)
		b.Post(t, "/containers/"+id+"/reinstall", map[string]string{"image": registry.Addr + "/nope:1"})
	}, unready("ImageNotFound"), changed("installing", "failed", "ImageNotFound"), `failed .* image not found: `, "failed ImageNotFound"},
	"registry-away": {func(t *testing.T, b *berthtest.Berth, id string) {
		b.Post(t, "/containers", b.Body(t, id, berthtest.Spec{"image": "127.0.0.1:1/yes:1"}))
	}, unready("PullFailed"), `"WARN","msg":"pull .*connection refused; berth tries again until the registry answers","container":"%s",.*"reason":"PullFailed"`,
		`installing .* connection refused`, `connection refused.* PullFailed`},
	"port-taken": {func(t *testing.T, b *berthtest.Berth, id string) {
		port := b.Port(t)
		l, err := net.Listen("tcp", net.JoinHostPort(port.IP, fmt.Sprint(port.Port)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		b.Made(t, id, berthtest.Spec{"ports": []any{port}})
		b.Verb(t, id, "start")
	}, unready("PortTaken"), changed("starting", "exit", "PortTaken"), `exit .* cannot start: port is taken: `, "cannot start: port is taken"},
	"volume-gone": {func(t *testing.T, b *berthtest.Berth, id string) {
		b.Made(t, id, nil)
		require.NoError(t, os.RemoveAll(b.Container(t, id).Mount.Source))
		b.Verb(t, id, "start")
	}, unready("VolumeMissing"), changed("starting", "exit", "VolumeMissing"), `exit .* cannot start: mount source is missing: `, "cannot start: mount source is missing"},
	"install-hangs": {func(t *testing.T, b *berthtest.Berth, id string) {
		b.Create(t, id, berthtest.Spec{"install_script": "sleep 100000"})
	}, unready("InstallSlow"), `"WARN","msg":"the install script has run since .* and is killed after 1h0m0s, counted from .*","container":"%s"`,
		`installing .* the install script has run since `, "is killed after 1h0m0s, counted from its start, or from the last start of berth if that is later InstallSlow"},
	"install-fails": {func(t *testing.T, b *berthtest.Berth, id string) {
		b.Create(t, id, berthtest.Spec{"install_script": "exit 7"})
	}, unready("ExitCode"), changed("installing", "failed", "ExitCode") + `,"exit_code":7`, `failed .* the install script ended with exit code 7`, "failed ExitCode"},
	"pattern-never": {started(berthtest.Spec{"start_pattern": "never printed"}), unready("StartPatternNotMatched"),
		`"WARN","msg":"no line of the console has matched start_pattern .never printed. since .*","container":"%s"`,
		`starting .* start_pattern .never printed.`, "start_pattern .never printed. since .* StartPatternNotMatched"},
	"out-of-memory": {started(berthtest.Spec{"startup_command": "sh -c 'tail /dev/zero'", "limits": map[string]any{"memory": 16 << 20}}),
		`berth_container_oom_kills_total\{container="%s"\} [1-9]`, changed("[a-z]+", "exit", "OutOfMemory"),
		`exit .* the container ran out of memory, exit code 137`, "exit OutOfMemory"},
	"crash-loop": {started(berthtest.Spec{"startup_command": "sh -c 'exit 3'"}),
		`berth_container_crashes_total\{container="%s"\} [1-9]`, changed("[a-z]+", "exit", "Exited") + `,"exit_code":3`,
		`exit .* exit code 3, (restarted .*, )?next attempt in `, "exit Exited"},
}

// TestFailuresAreVisible causes the failures of hack/deploy's alerts one beside the
// other, and finds the series that fires each alert, a line of the log that names the
// container and the cause, the cause in the table of berth ps on a terminal, and an
// event.
func TestFailuresAreVisible(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{Env: []string{"BERTH_LOG_FORMAT=json",
		"BERTH_RECONCILE_START_WARNING=1s", "BERTH_RECONCILE_INSTALL_WARNING=1s"}})
	for id, f := range visibleFailures {
		f.cause(t, b, id)
	}
	for id, f := range visibleFailures {
		series, line := regexp.MustCompile(fmt.Sprintf(f.series, id)), regexp.MustCompile(fmt.Sprintf(f.line, id))
		berthtest.Until(t, wait, "the series of "+id+": "+series.String(), func() bool {
			return series.Match(b.Must(t, "GET", "/metrics", nil).Body)
		})
		berthtest.Until(t, wait, "the line of "+id+": "+line.String(), func() bool { return line.MatchString(b.Log()) })
		row := regexp.MustCompile("(?m)^" + id + " +" + f.row)
		berthtest.Until(t, wait, "the row of "+id+": "+row.String(), func() bool { return row.MatchString(psOnTerminal(t, b)) })
		event := regexp.MustCompile(f.event)
		berthtest.Until(t, wait, "the event of "+id+": "+event.String(), func() bool { return event.MatchString(eventsOf(t, b, id)) })
	}
	require.False(t, strings.Contains(b.Log(), b.Token), "the log has no secrets")
}

// psOnTerminal returns the table of berth ps on a terminal of 100 columns.
func psOnTerminal(t *testing.T, b *berthtest.Berth) string {
	t.Helper()
	master, err := pty.StartWithSize(berthCommand(t, b, "ps"), &pty.Winsize{Cols: 100, Rows: 50})
	require.NoError(t, err)
	defer master.Close()
	text, err := io.ReadAll(master)
	require.ErrorIs(t, err, unix.EIO, "a terminal ends with this error")
	return string(text)
}

// TestEngineFailureIsVisible: the table of an operator whose engine is away begins with
// that, and shows the last states; the events name it, before and after a kill of berth.
func TestEngineFailureIsVisible(t *testing.T) {
	t.Parallel()
	b := berthtest.Prepare(t, berthtest.Options{})
	proxy := enginetest.StartProxy(t, b.Engine)
	b.Env("DOCKER_HOST=" + proxy.Host())
	b.Run(t)
	b.Ready(t)
	b.Made(t, "mc", nil)
	_, _, code := runCommand(t, b, "ps")
	require.Zero(t, code)
	all := b.Listen(t, "/ws")
	proxy.Inject(enginetest.Reset, enginetest.All)
	var out string
	berthtest.Until(t, wait, "berth ps fails", func() bool {
		out, _, code = runCommand(t, b, "ps")
		return code == 7
	})
	require.Contains(t, out, " is not ready: engine: does not answer; berth doctor names what to do\n")
	require.Regexp(t, `(?m)^mc +ready `, out)
	away := "the engine does not answer: states are the last observed ones, and requests wait for it EngineUnreachable\n"
	berthtest.Until(t, wait, "the event of the outage", func() bool { return eventsOfNode(t, b) == away })
	all.Next(t, 0, "the message of the outage", func(m berthtest.Message) bool {
		return m.Event == v1.EventMessage && strings.Contains(m.Raw, `"reason":"EngineUnreachable"`) && !strings.Contains(m.Raw, `"container"`)
	})
	b.Kill9(t)
	b.Run(t)
	b.Answers(t, "/healthz")
	proxy.Clear()
	b.Ready(t)
	berthtest.Until(t, wait, "the event of the engine's return", func() bool { return eventsOfNode(t, b) != away })
	require.Regexp(t, "^"+away+`the engine answers again(, after \S+)? Answers\n$`, eventsOfNode(t, b))
}

// eventsOfNode returns the data and the reason of the events without a container, one per
// line.
func eventsOfNode(t *testing.T, b *berthtest.Berth) string {
	t.Helper()
	list, err := b.API.Events().List(t.Context(), client.Cursor{}, 1000, client.EventFilter{})
	require.NoError(t, err)
	var text strings.Builder
	for _, e := range list.Events {
		if e.Container == "" {
			fmt.Fprintln(&text, e.Data, e.Reason)
		}
	}
	return text.String()
}

// eventsOf returns the data and the reason of a container's events, one per line.
func eventsOf(t *testing.T, b *berthtest.Berth, id string) string {
	t.Helper()
	list, err := b.API.Events().List(t.Context(), client.Cursor{}, 1000, client.EventFilter{Container: id})
	require.NoError(t, err)
	var text strings.Builder
	for _, e := range list.Events {
		fmt.Fprintln(&text, e.Data, e.Reason)
	}
	return text.String()
}
