package hack_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// block is a fenced block of commands in a document.
type block struct {
	place string // document:line
	lines []string
}

const readme = "../README.md"

// pasted are the documents whose commands a reader can paste, in this order.
var pasted = []string{readme, "docs/operator.md"}

// blocks returns the blocks of a document that are fenced as sh.
func blocks(t *testing.T, page string) (list []block) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var open *block
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "```sh":
			open = &block{place: fmt.Sprintf("%s:%d", page, i+1)}
		case strings.HasPrefix(line, "```") && open != nil:
			list = append(list, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, line)
		}
	}
	require.Nil(t, open, "a block does not end")
	require.NotEmpty(t, list, page)
	return list
}

// want returns the output that the block documents for its commands: lines that begin with
// "#> ", in which … stands for anything.
func (b block) want() (list []*regexp.Regexp) {
	for _, line := range b.lines {
		if text, is := strings.CutPrefix(line, "#> "); is {
			list = append(list, regexp.MustCompile("(?s)"+strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".*?")))
		}
	}
	return list
}

// reader is a new user: a tree with its own bin, a home, a configuration that
// does not exist yet, and free ports.
type reader struct {
	t    *testing.T
	tree string
	env  []string
	port map[string]string // a port of the README to the one here
}

func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, tree: t.TempDir(), port: map[string]string{"8070": strconv.Itoa(berthtest.FreePort(t)), "25565": strconv.Itoa(berthtest.FreePort(t))}}
	entries, err := os.ReadDir("..")
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != "bin" && e.Name() != ".git" {
			from, err := filepath.Abs(filepath.Join("..", e.Name()))
			require.NoError(t, err)
			require.NoError(t, os.Symlink(from, filepath.Join(r.tree, e.Name())))
		}
	}
	home := t.TempDir()
	r.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "DOCKER_HOST=" + enginetest.Shared(t).Host(),
		"BERTH_CONFIG=" + filepath.Join(home, "berth.yaml"), "BERTH_STORAGE_DATA_PATH=" + filepath.Join(home, "data"),
		"BERTH_SERVER_PORT=" + r.port["8070"], "BERTH_SERVER_HOST=127.0.0.1", "BERTH_FIREWALL_BACKEND=none"}
	require.NoError(t, os.Mkdir(filepath.Join(r.tree, "bin"), 0o700))
	require.NoError(t, os.Symlink(berthtest.Binary(t), filepath.Join(r.tree, "bin", "berth")))
	return r
}

// serve runs the daemon until the test ends, as make run does.
func (r *reader) serve() {
	r.t.Helper()
	var log bytes.Buffer
	daemon := exec.Command(filepath.Join(r.tree, "bin", "berth"), "serve")
	daemon.Env, daemon.Dir = r.env, r.tree
	daemon.Stdout, daemon.Stderr = &log, &log
	require.NoError(r.t, daemon.Start())
	r.t.Cleanup(func() {
		r.clean()
		_ = daemon.Process.Signal(syscall.SIGTERM)
		_ = daemon.Wait()
		if r.t.Failed() {
			r.t.Logf("the daemon's log:\n%s", log.String())
		}
		require.NotRegexp(r.t, "berth_[0-9a-f]{32}", log.String(), "a token in the log")
	})
	require.Eventually(r.t, func() bool { return ready("http://127.0.0.1:" + r.port["8070"] + "/readyz") }, time.Minute, 50*time.Millisecond)
}

// clean deletes what a failure has left on the shared engine.
func (r *reader) clean() {
	cmd := exec.Command("bash", "-c", `bin/berth containers -o name | xargs -r bin/berth delete --volume --wait --timeout 30s`)
	cmd.Env, cmd.Dir = r.env, r.tree
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Logf("containers may be left: %v\n%s", err, out)
	}
}

func ready(url string) bool {
	response, err := http.Get(url)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}

// run runs all blocks in one shell, as somebody does who pastes them one after
// the other, and returns what each has printed.
func (r *reader) run(all []block) []string {
	r.t.Helper()
	const mark = "::block "
	script := "exec 2>&1\n"
	for i, b := range all {
		script += fmt.Sprintf("echo; echo '%s%d'\n%s\n", mark, i, strings.Join(b.lines, "\n"))
	}
	for from, to := range r.port {
		script = strings.ReplaceAll(script, from, to)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Env, cmd.Dir = r.env, r.tree
	out, err := cmd.Output()
	printed := make([]string, len(all))
	current := 0
	for scan := bufio.NewScanner(bytes.NewReader(out)); scan.Scan(); {
		if n, is := strings.CutPrefix(scan.Text(), mark); is {
			current, _ = strconv.Atoi(n)
			continue
		}
		printed[current] += scan.Text() + "\n"
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.t.Fatalf("the block at %s fails: %v\n%s", all[current].place, exit, printed[current])
	}
	require.NoError(r.t, err)
	return printed
}

// TestREADME runs the commands of the README and of its documents, as a new user would.
func TestREADME(t *testing.T) {
	r := newReader(t)
	r.serve()
	var all []block
	for _, page := range pasted {
		all = append(all, blocks(t, page)...)
	}
	for i, printed := range r.run(all) {
		rest := printed
		for from, to := range r.port {
			rest = strings.ReplaceAll(rest, to, from)
		}
		for _, want := range all[i].want() {
			at := want.FindStringIndex(rest)
			require.NotNil(t, at, "block at %s: %s is not in\n%s", all[i].place, want, printed)
			rest = rest[at[1]:]
		}
		require.NotRegexp(t, "berth_[0-9a-f]{32}", printed, "a token on the screen")
	}
	r.nothingIsLeft()
	r.metricsExist()
}

// nothingIsLeft requires that the README ends with an empty host.
func (r *reader) nothingIsLeft() {
	r.t.Helper()
	for path, want := range map[string]string{"/containers": `{"containers":[]}`, "/volumes": `{"volumes":[]}`, "/network/ports": `{"ports":[]}`} {
		require.Eventually(r.t, func() bool { return strings.TrimSpace(r.get(path)) == want }, time.Minute, 100*time.Millisecond, path)
	}
}

// get asks the daemon as the README does.
func (r *reader) get(path string) string {
	r.t.Helper()
	cmd := exec.Command("bash", "-c", `curl -K <(bin/berth config curl) "http://127.0.0.1:$BERTH_SERVER_PORT$0"`, path)
	cmd.Env, cmd.Dir = r.env, r.tree
	out, err := cmd.Output()
	require.NoError(r.t, err)
	return string(out)
}

// metricsExist requires that every metric of the documents is exported. Those of
// containers, volumes and backups exist only with one, those of SFTP and a limit only where it is
// configured: hack/deploy queries them.
func (r *reader) metricsExist() {
	r.t.Helper()
	text, err := os.ReadFile("docs/operator.md")
	require.NoError(r.t, err)
	metrics := r.get("/metrics")
	names := regexp.MustCompile("`((?:berth|workqueue)_[a-z_]+)[`{]").FindAllStringSubmatch(string(text), -1)
	require.Greater(r.t, len(names), 5)
	for _, name := range names {
		if !slices.ContainsFunc([]string{"berth_container_", "berth_volume_", "berth_backup_last_", "berth_backup_limit_", "berth_backup_policy_", "berth_schedule_last_", "berth_schedule_failures", "berth_sftp_"},
			func(prefix string) bool { return strings.HasPrefix(name[1], prefix) }) {
			require.True(r.t, strings.Contains(metrics, "# TYPE "+name[1]+" "), "docs/operator.md names the metric %s, which berth does not export", name[1])
		}
	}
}

// TestREADMEIsShort keeps the README to what a newcomer reads.
func TestREADMEIsShort(t *testing.T) {
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	require.LessOrEqual(t, len(lines), 170)
	for i, line := range lines {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 100, "line %d: %s", i+1, line)
	}
}

// TestLinks requires that every file that a document links to exists.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			path := filepath.Join(filepath.Dir(page), found[1])
			_, err := os.Stat(path)
			require.NoError(t, err, "linked from %s", page)
		}
	}
}
