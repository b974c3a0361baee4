package enginetest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Root returns the directory with the engine of a Debian suite: bookworm has
// Docker 20.10, trixie 26.1, sid 28.5. The first call on a machine takes two
// minutes to create the directory.
func Root(t testing.TB, suite string) (path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("go env GOMOD: %v", err)
	}
	script := filepath.Join(filepath.Dir(strings.TrimSpace(string(mod))), "hack", "engines.sh")
	var failure bytes.Buffer
	cmd := exec.CommandContext(ctx, script, "root", suite)
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s root %s: %v: %s", script, suite, err, failure.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// root is a mount namespace in which /usr and /etc of a directory are mounted over
// the machine's. All other paths mean the same inside and outside. The namespace
// outlives its dockerd, as the host's does, so that the mounts of containers that
// keep running stay.
type root struct{ holder *exec.Cmd }

// enterRoot creates the namespace and waits until it is complete.
func enterRoot(t testing.TB, path string) *root {
	t.Helper()
	const script = `mount --rbind "$0/etc" /etc && mount --rbind "$0/usr" /usr && echo ready && exec cat`
	holder := exec.Command("unshare", "--mount", "--propagation", "slave", "sh", "-c", script, path)
	holder.Stderr = os.Stderr
	if _, err := holder.StdinPipe(); err != nil { // it closes when this process exits, which ends cat
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatalf("%v: run hack/docker.sh tools", err)
	}
	r := &root{holder: holder}
	if n, err := out.Read(make([]byte, len("ready\n"))); n == 0 {
		r.leave()
		t.Fatalf("engine of %s: %v", path, err)
	}
	return r
}

// nsenter returns the options of nsenter that enter the namespace.
func (r *root) nsenter() []string {
	if r == nil {
		return nil
	}
	return []string{"--mount=/proc/" + strconv.Itoa(r.holder.Process.Pid) + "/ns/mnt"}
}

// leave ends the holder. The namespace ends with its last process.
func (r *root) leave() {
	_ = r.holder.Process.Kill()
	_ = r.holder.Wait()
}
