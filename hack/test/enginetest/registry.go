package enginetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Registry is an image registry on a loopback port that one test owns. Engines on
// this machine use it without TLS.
type Registry struct {
	Addr           string // host:port, the first part of its images' names
	User, Password string // empty: no credentials are required

	cmd    *exec.Cmd
	within []string // command that enters an engine's network namespace; nil: the test's namespace
}

// StartRegistry starts a registry without authentication. It ends with the test.
func StartRegistry(t testing.TB) *Registry {
	t.Helper()
	return startRegistry(t, &Registry{Addr: freeAddress(t)}, "")
}

// StartRegistryAt starts a registry on an address in the test's network namespace. An empty
// user means no authentication.
func StartRegistryAt(t testing.TB, addr, user, password string) *Registry {
	t.Helper()
	return startRegistry(t, &Registry{Addr: addr, User: user, Password: password}, locked(t, user, password))
}

// StartRegistryOf starts a registry on a loopback port in the network namespace of
// an isolated engine. An empty user means no authentication.
func StartRegistryOf(t testing.TB, i *Isolated, port int, user, password string) *Registry {
	t.Helper()
	r := &Registry{Addr: fmt.Sprintf("127.0.0.1:%d", port), User: user, Password: password,
		within: []string{"nsenter", "--net=/run/netns/" + i.Netns}}
	return startRegistry(t, r, locked(t, user, password))
}

// StartLockedRegistry starts a registry that requires one user's credentials.
func StartLockedRegistry(t testing.TB, user, password string) *Registry {
	t.Helper()
	r := &Registry{Addr: freeAddress(t), User: user, Password: password}
	return startRegistry(t, r, locked(t, user, password))
}

// locked returns the configuration of a registry that requires one user's credentials.
func locked(t testing.TB, user, password string) string {
	t.Helper()
	if user == "" {
		return ""
	}
	line, err := exec.Command("htpasswd", "-Bbn", user, password).Output()
	if err != nil {
		t.Fatalf("htpasswd: %v: run hack/docker.sh tools", err)
	}
	file := filepath.Join(t.TempDir(), "htpasswd")
	if err := os.WriteFile(file, line, 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("auth: {htpasswd: {realm: test, path: %q}}\n", file)
}

// Push pushes an image of c under a name such as "server:1", and returns its full
// reference. The engine does not keep that reference.
func (r *Registry) Push(t testing.TB, c *Client, image, name string) (ref string) {
	t.Helper()
	return c.Push(t, image, r.Addr, name, r.User, r.Password)
}

// Kill ends the registry: its port refuses connections from then on.
func (r *Registry) Kill(t testing.TB) {
	t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait()
}

func startRegistry(t testing.TB, r *Registry, auth string) *Registry {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %q}, delete: {enabled: true}}\nhttp: "+
		"{addr: %q}\n%s",
		dir, r.Addr, auth)
	file := filepath.Join(t.TempDir(), "registry.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	r.cmd = r.command("docker-registry", "serve", file)
	start(t, r.cmd)
	Until(t, 3*time.Minute, "the registry answers", func() bool {
		return r.command("curl", "-s", "--max-time", "5", "http://"+r.Addr+"/v2/").Run() == nil
	})
	return r
}

// command returns a command that runs in the registry's network namespace.
func (r *Registry) command(name string, args ...string) *exec.Cmd {
	all := append(append([]string{}, r.within...), append([]string{name}, args...)...)
	return exec.Command(all[0], all[1:]...)
}

// freeAddress returns a loopback address that no other test has.
func freeAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprint("127.0.0.1:", FreePort(t))
}

// start starts a program and kills it at the end of the test.
func start(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run hack/docker.sh tools", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}
