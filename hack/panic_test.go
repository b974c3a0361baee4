package hack_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unrecovered are the files whose goroutines may end the process by a panic, and how many they have.
var unrecovered = map[string]int{
	"api/auth/sessions.go":        1, // waits
	"api/server/edge/request.go":  1, // waits for a client to leave
	"api/server/server.go":        1, // ends sessions: without it, revoked tokens would go on
	"api/server/socket.go":        1, // recovers in what it calls
	"api/sftp/server.go":          5, // the same, two that wait, one of the library, and connections, which recover
	"api/sftp/session.go":         2, // of the library
	"cmd/berth/serve.go":          3, // the end of the daemon, and parts, which are in Persist
	"controller/loop.go":          2, // feed has Catch
	"runtime/blob/upload.go":      1, // writes what a job does, which has Catch
	"runtime/kubernetes/logs.go":  1,
	"runtime/kubernetes/watch.go": 1, // the Lease: without it, another berth would begin
	"store/kv/compactor.go":       1, // a store that is not sound ends the daemon
	"store/kv/db.go":              1,
	"store/store.go":              1,
	"store/writer.go":             1,
}

// TestGoroutinesSurvivePanics: a panic in a goroutine of the daemon ends what it does, and not the daemon.
func TestGoroutinesSurvivePanics(t *testing.T) {
	begins, recovers := regexp.MustCompile(`^\s*go func|\.Go\(`), regexp.MustCompile(`Catch\(|Persist\(|recover`)
	for _, root := range []string{"api", "controller", "store", "runtime", "cmd/berth"} {
		require.NoError(t, filepath.WalkDir("../"+root, func(path string, _ os.DirEntry, err error) error {
			name := strings.TrimPrefix(path, "../")
			skip := strings.HasPrefix(name, "cmd/berth/cli/") || strings.HasPrefix(name, "cmd/berth/doctor/") || strings.HasPrefix(name, "runtime/fake/") || strings.HasPrefix(name, "runtime/conform/")
			if err != nil || skip || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			lines, without := strings.Split(string(text), "\n"), 0
			for i, line := range lines {
				if begins.MatchString(line) && !recovers.MatchString(strings.Join(lines[i:min(i+5, len(lines))], "\n")) {
					without++
				}
			}
			require.Equal(t, unrecovered[name], without, "goroutines in %s without controller.Catch or Persist", name)
			return err
		}))
	}
}
