package berthtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/hack/test/enginetest"
	"berth/hack/test/kubetest"
)

// Options change the defaults of Start.
type Options struct {
	Config string   // further YAML of the configuration, without server, authorization, storage and firewall
	Env    []string // further environment variables, "KEY=value"
	Data   string   // its data directory; empty: a new one
	Limits []string // options of prlimit, such as "--nofile=4096:4096"

	Engine *enginetest.Client // nil: the cluster beside the test, or else the shared engine
}

// Berth is a daemon with a configuration, a data directory and a port of its own.
type Berth struct {
	*Client
	Config  string              // path of its configuration
	Data    string              // its data directory
	Engine  *enginetest.Client  // nil on a cluster
	Cluster *kubetest.Namespace // nil: none

	t      testing.TB
	env    []string
	limits []string
	logs   string // path of its log
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
}

// Start starts a daemon and waits until it is ready. When the test ends, the daemon is
// stopped and its containers are removed.
func Start(t testing.TB, o Options) *Berth {
	t.Helper()
	b := Prepare(t, o)
	b.Run(t)
	b.Ready(t)
	return b
}

// Prepare does everything that Start does, except for starting the daemon.
func Prepare(t testing.TB, o Options) *Berth {
	t.Helper()
	dir := t.TempDir()
	port := FreePort(t)
	token := NewToken()
	b := &Berth{
		Client: NewClient(t, fmt.Sprintf("127.0.0.1:%d", port), token),
		Config: filepath.Join(dir, "berth.yaml"), Data: filepath.Join(dir, "data"), logs: filepath.Join(dir, "log"),
		t: t, env: o.Env, limits: o.Limits,
	}
	if o.Data != "" {
		b.Data = o.Data
	}
	switch {
	case o.Engine != nil:
		b.Engine = o.Engine
	case kubetest.Running():
		b.Data = kubetest.Dir(t)
		volumes := filepath.Join(b.Data, "volumes")
		if err := os.Mkdir(volumes, 0o755); err != nil {
			t.Fatal(err)
		}
		b.Cluster = kubetest.New(t, volumes)
		o.Config += "\n" + b.Cluster.Config()
	default:
		b.Engine = enginetest.Shared(t)
	}
	b.WriteConfig(t, fmt.Sprintf("server: {host: 127.0.0.1, port: %d}\nauthorization: {token: %s}\n"+
		"storage: {data_path: %s}\nfirewall: {backend: none}\n%s\n", port, token, b.Data, o.Config))
	t.Cleanup(b.end)
	return b
}

// NewToken returns a new access token.
func NewToken() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return "berth_" + hex.EncodeToString(b[:])
}

// WriteConfig replaces the configuration.
func (b *Berth) WriteConfig(t testing.TB, text string) {
	t.Helper()
	b.secrets.addConfig(text)
	if err := os.WriteFile(b.Config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Env adds variables, "KEY=value", to the environment of later calls of Run.
func (b *Berth) Env(more ...string) { b.env = append(b.env, more...) }

// Run starts the daemon and does not wait until it is ready.
func (b *Berth) Run(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(b.logs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := limited(b.limits, Binary(t), "serve", "--config", b.Config)
	cmd.Stdout, cmd.Stderr = log, log
	host := "DOCKER_HOST="
	if b.Engine != nil {
		host += b.Engine.Host()
	}
	// The tests need no tenth of the machine's disk.
	cmd.Env = append(append(os.Environ(), host, "BERTH_DOCKER_PULL_RESERVE=0"), b.env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	b.cmd, b.exited = cmd, exited
}

// limited returns a command under limits. prlimit replaces itself with the program, so
// that they have the same pid.
func limited(limits []string, program string, args ...string) *exec.Cmd {
	if len(limits) == 0 {
		return exec.Command(program, args...)
	}
	return exec.Command("prlimit", slices.Concat(limits, []string{program}, args)...)
}

// Ready waits until /readyz answers 200.
func (b *Berth) Ready(t testing.TB) {
	t.Helper()
	b.Answers(t, "/readyz")
}

// Answers waits until a public path answers 200.
func (b *Berth) Answers(t testing.TB, path string) {
	t.Helper()
	Until(t, 3*time.Minute, "berth answers "+path, func() bool {
		if b.ended() {
			t.Fatalf("berth ended:\n%s", b.Log())
		}
		answer, err := b.Try(context.Background(), "GET", path, nil)
		return err == nil && answer.Status == 200
	})
}

// Pid returns the process id of the daemon.
func (b *Berth) Pid() int { return b.cmd.Process.Pid }

// Log returns the log of all runs of the daemon.
func (b *Berth) Log() string {
	text, err := os.ReadFile(b.logs)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Kill9 kills the daemon. Its containers continue to run.
func (b *Berth) Kill9(t testing.TB) {
	t.Helper()
	searchProcess(b)
	b.Signal(t, syscall.SIGKILL)
	b.Exit(t, time.Now())
}

// Restart kills the daemon, starts it again, and waits until it is ready.
func (b *Berth) Restart(t testing.TB) {
	t.Helper()
	b.Kill9(t)
	b.Run(t)
	b.Ready(t)
}

// Term stops the daemon with SIGTERM. It returns the duration and the exit code.
func (b *Berth) Term(t testing.TB) (took time.Duration, code int) {
	t.Helper()
	began := time.Now()
	b.Signal(t, syscall.SIGTERM)
	return b.Exit(t, began)
}

// Exit waits until the daemon has exited. It returns the time since began and the exit
// code.
func (b *Berth) Exit(t testing.TB, began time.Time) (took time.Duration, code int) {
	t.Helper()
	late := time.NewTimer(3 * time.Minute)
	defer late.Stop()
	select {
	case <-b.exited:
	case <-late.C:
		t.Fatalf("berth does not exit:\n%s", tail(b.Log()))
	}
	return time.Since(began), b.cmd.ProcessState.ExitCode()
}

// Signal sends the daemon a signal.
func (b *Berth) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := b.cmd.Process.Signal(s); err != nil {
		t.Fatalf("berth: signal %s: %v\n%s", s, err, tail(b.Log()))
	}
}

func (b *Berth) ended() bool {
	select {
	case <-b.exited:
		return true
	default:
		return false
	}
}

// Store returns the id of the daemon's store, which is a label of its containers.
func (b *Berth) Store() string {
	text, _ := os.ReadFile(filepath.Join(b.Data, "store", "MARK"))
	id, _, _ := strings.Cut(string(text), " ")
	return id
}

// Containers returns the engine's containers of this store. With an id it returns only
// those of that internal_id.
func (b *Berth) Containers(t testing.TB, id string) []enginetest.Listed {
	t.Helper()
	if b.Cluster != nil {
		return b.Cluster.Containers(t, id)
	}
	labels := []string{"io.berth.store=" + b.Store()}
	if id != "" {
		labels = append(labels, "io.berth.container="+id)
	}
	return b.Engine.ByLabel(t, labels...)
}

// Processes returns what identifies the process of each server container that runs, by
// internal_id. Another start is another process.
func (b *Berth) Processes(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, c := range b.Containers(t, "") {
		if b.Engine != nil {
			if one, found := b.Engine.Inspect(t, c.ID); found && one.State.Running {
				c.Run = fmt.Sprint(c.ID, one.State.Pid, one.State.StartedAt)
			}
		}
		if c.Run != "" && c.Labels["io.berth.role"] == "server" {
			all[c.Labels["io.berth.container"]] = c.Run
		}
	}
	return all
}
