package panel_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// npm runs a command with the packages of the panel, and returns its output.
func npm(t *testing.T, command ...string) (string, error) {
	t.Helper()
	text, err := exec.Command("./npm.sh", command...).CombinedOutput()
	return string(text), err
}

// compile generates the types and compiles the panel. It runs once.
var compile = sync.OnceValues(func() (string, error) {
	document, err := filepath.Abs("../../api/openapi.yaml")
	if err != nil {
		return "", err
	}
	script := "openapi-typescript " + document + " -o api.ts && tsc && pwd"
	text, err := exec.Command("./npm.sh", "sh", "-c", script).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1], nil
})

func directory(t *testing.T) string {
	t.Helper()
	dir, err := compile()
	require.NoError(t, err)
	return dir
}

// TestPanelTypes checks that mistakes do not compile.
func TestPanelTypes(t *testing.T) {
	dir := directory(t)
	text, err := os.ReadFile("panel.ts")
	require.NoError(t, err)
	var files []string
	for name, replaced := range map[string][2]string{
		"path":   {"'/auth/tokens'", "'/auth/token'"},
		"method": {"'get', '/containers/{id}'", "'delete', '/containers/{id}'"},
		"field":  {"ttl: '10m'", "tll: '10m'"},
		"scope":  {"scopes: ['admin']", "scopes: ['root']"},
		"vendor": {"'Application/vnd.berthv1+json'", "'application/json'"},
		"answer": {"created.state", "created.status"},
		"event":  {"case 'logs':", ""},
		"power":  {"data: 'start'", "data: 'begin'"},
		"reason": {"'Done')", "'Ready')"},
		"code":   {"'container_not_found'", "'not_found'"},
	} {
		require.Contains(t, string(text), replaced[0])
		file := "wrong-" + name + ".ts"
		files = append(files, file)
		wrong := strings.Replace(string(text), replaced[0], replaced[1], 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(wrong), 0o644))
		t.Cleanup(func() { _ = os.Remove(filepath.Join(dir, file)) })
	}
	options := "tsc --strict --noEmit --skipLibCheck --target es2022 --module nodenext --types node "
	output, err := npm(t, "sh", "-c", options+strings.Join(files, " "))
	require.Error(t, err)
	for _, file := range files {
		require.Contains(t, output, file+"(", "it compiles")
	}
}

// TestPanel plays the main job, and kills the daemon while a container restarts.
func TestPanel(t *testing.T) {
	dir := directory(t)
	b := berthtest.Start(t, berthtest.Options{})
	panel := exec.Command("node", filepath.Join(dir, "out", "panel.js"))
	panel.Env = append(os.Environ(), "BERTH_URL=http://"+b.Addr, "BERTH_TOKEN="+b.Token,
		"IMAGE="+enginetest.Busybox(t), fmt.Sprint("PORT=", berthtest.FreePort(t)))
	panel.Stderr = os.Stderr
	output, err := panel.StdoutPipe()
	require.NoError(t, err)
	input, err := panel.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, panel.Start())
	timeout := time.AfterFunc(3*time.Minute, func() { _ = panel.Process.Kill() })
	defer timeout.Stop()

	var last string
	for lines := bufio.NewScanner(output); lines.Scan(); {
		last = lines.Text()
		t.Log(last)
		if last == "kill" {
			b.Restart(t)
			_, err := fmt.Fprintln(input, "berth is back")
			require.NoError(t, err)
		}
	}
	require.NoError(t, panel.Wait())
	require.Equal(t, "done", last)
}
