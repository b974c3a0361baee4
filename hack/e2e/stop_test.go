package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// game saves when it is asked to stop, and exits with 7.
const game = `#!/bin/busybox sh
trap 'echo saved; exit 7' TERM INT
echo up
while true; do sleep 0.1; done
`

// TestStopReachesTheProgram requires that a graceful stop lets the program save its work that
// a startup command runs in a shell, with each shell that images have as /bin/sh.
func TestStopReachesTheProgram(t *testing.T) {
	t.Parallel()
	images := map[string]string{}
	for _, shell := range []string{"busybox", "dash", "bash"} {
		files := map[string][]byte{"game": []byte(game)}
		if shell != "busybox" {
			files = withLibraries(t, "/bin/"+shell, files)
			files["bin/sh"] = files["bin/"+shell]
		}
		images[shell] = ownImage(t, shell, files)
	}
	b := berthtest.Start(t, berthtest.Options{})
	want := map[string]string{}
	for shell, image := range images {
		for i, line := range []string{"/game $X", "cd / && /game", "A=1 /game", "/game; echo after"} {
			for j, stop := range []berthtest.Spec{{}, {"command": "\x03"}, {"command": "^C"}} {
				id := fmt.Sprintf("%s-%d-%d", shell, i, j)
				want[id] = fmt.Sprint(shell, ": ", line, ": ", stop)
				b.Create(t, id, berthtest.Spec{"image": image, "startup_command": line, "start_pattern": "^up", "power": "running", "tty": j > 0, "stop": stop})
			}
		}
	}
	for id := range want {
		b.State(t, id, "running")
		b.Verb(t, id, "stop")
	}
	for id, what := range want {
		c := b.State(t, id, "exit")
		logs := string(b.Must(t, "GET", "/containers/"+id+"/logs", nil).Body)
		require.Contains(t, logs, `"data":"saved"`, "%s: %s", what, logs)
		require.NotContains(t, logs, `"after"`, what)
		require.Equal(t, 7, *c.ExitCode, what)
	}
}

// withLibraries adds a program of the host and the libraries that it loads.
func withLibraries(t *testing.T, program string, files map[string][]byte) map[string][]byte {
	t.Helper()
	out, err := exec.Command("ldd", program).Output()
	require.NoError(t, err)
	paths := []string{program}
	for word := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(word, "/") {
			paths = append(paths, word)
		}
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		files[strings.TrimPrefix(path, "/")] = content
	}
	return files
}
