package e2e_test

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/berthtest"
	"berth/hack/enginetest"
)

// failure is one that an operator has to understand from the metrics alone, and
// from the log alone.
type failure struct {
	cause  func(t *testing.T, b *berthtest.Berth, id string)
	series string // an expression of the series, which alerts.yaml selects
	line   string // an expression of a line of the log
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
	}, unready("ImageNotFound"), changed("installing", "failed", "ImageNotFound")},
	"registry-away": {func(t *testing.T, b *berthtest.Berth, id string) {
		b.Post(t, "/containers", b.Body(t, id, berthtest.Spec{"image": "127.0.0.1:1/yes:1"}))
	}, unready("PullFailed"), `"the image of a container cannot be pulled","container":"%s","err":".*connection refused`},
	"port-taken": {func(t *testing.T, b *berthtest.Berth, id string) {
		port := b.Port(t)
		l, err := net.Listen("tcp", net.JoinHostPort(port.IP, fmt.Sprint(port.Port)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		b.Made(t, id, berthtest.Spec{"ports": []any{port}})
		b.Verb(t, id, "start")
	}, unready("PortTaken"), changed("starting", "exit", "PortTaken")},
	"volume-gone": {func(t *testing.T, b *berthtest.Berth, id string) {
		b.Made(t, id, nil)
		require.NoError(t, os.RemoveAll(b.Container(t, id).Mount.Source))
		b.Verb(t, id, "start")
	}, unready("VolumeMissing"), changed("starting", "exit", "VolumeMissing")},
	"install-hangs": {func(t *testing.T, b *berthtest.Berth, id string) {
		b.Create(t, id, berthtest.Spec{"install_script": "sleep 100000"})
	}, unready("Installing"), `"container changed its state","container":"%s","from":"","to":"installing"`},
	"install-fails": {func(t *testing.T, b *berthtest.Berth, id string) {
		b.Create(t, id, berthtest.Spec{"install_script": "exit 7"})
	}, unready("ExitCode"), changed("installing", "failed", "ExitCode") + `,"exit_code":7`},
	"pattern-never": {started(berthtest.Spec{"start_pattern": "never printed"}), unready("Starting"),
		`"container changed its state","container":"%s","from":"ready","to":"starting"`},
	"out-of-memory": {started(berthtest.Spec{"startup_command": "sh -c 'tail /dev/zero'", "limits": map[string]any{"memory": 16 << 20}}),
		`berth_container_oom_kills_total\{container="%s"\} [1-9]`, changed("running", "exit", "OutOfMemory")},
	"crash-loop": {started(berthtest.Spec{"startup_command": "sh -c 'exit 3'"}),
		`berth_container_crashes_total\{container="%s"\} [1-9]`, changed("[a-z]+", "exit", "Exited") + `,"exit_code":3`},
}

// TestFailuresAreVisible causes the failures of hack/deploy's alerts one beside the
// other, and finds the series that fires each alert and a line of the log that names
// the container and the cause.
func TestFailuresAreVisible(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{Env: []string{"BERTH_LOG_FORMAT=json"}})
	for id, f := range visibleFailures {
		f.cause(t, b, id)
	}
	for id, f := range visibleFailures {
		series, line := regexp.MustCompile(fmt.Sprintf(f.series, id)), regexp.MustCompile(fmt.Sprintf(f.line, id))
		berthtest.Until(t, wait, "the series of "+id+": "+series.String(), func() bool {
			return series.Match(b.Must(t, "GET", "/metrics", nil).Body)
		})
		berthtest.Until(t, wait, "the line of "+id+": "+line.String(), func() bool { return line.MatchString(b.Log()) })
	}
	require.False(t, strings.Contains(b.Log(), b.Token), "the log has no secrets")
}
