package panel_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// compile generates the types and compiles the panel and the example of panel.md. It runs once.
var compile = sync.OnceValues(func() (string, error) {
	document, err := filepath.Abs("../../api/openapi.yaml")
	if err != nil {
		return "", err
	}
	page, err := os.ReadFile("../docs/panel.md")
	if err != nil {
		return "", err
	}
	example := exec.Command("./npm.sh", "sh", "-c", "cat > example.ts")
	example.Stdin = strings.NewReader(block(string(page), "ts"))
	if text, err := example.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	script := "openapi-typescript " + document + " -o api.ts && cp api.ts berth.ts && tsc && pwd"
	text, err := exec.Command("./npm.sh", "sh", "-c", script).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1], nil
})

// block returns the block of a page that is fenced with a language.
func block(page, language string) string {
	_, text, _ := strings.Cut(page, "\n```"+language+"\n")
	text, _, _ = strings.Cut(text, "\n```")
	return text + "\n"
}

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
		"method": {"berth.GET('/events'", "berth.PUT('/events'"},
		"field":  {"ttl: '10m'", "tll: '10m'"},
		"scope":  {"scopes: ['admin']", "scopes: ['root']"},
		"answer": {"created.state", "created.status"},
		"event":  {"case 'logs':", ""},
		"power":  {"data: 'start'", "data: 'begin'"},
		"state":  {"state.power !== 'stopped'", "state.power !== 'off'"},
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

// TestExamples runs the programs at the beginning of panel.md.
func TestExamples(t *testing.T) {
	page, err := os.ReadFile("../docs/panel.md")
	require.NoError(t, err)
	compiled := directory(t)
	if output, err := exec.Command("../docker.sh", "tools", "php:php-cli", "python3:python3").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	b := berthtest.Start(t, berthtest.Options{})
	environment := append(os.Environ(), "BERTH_URL=http://"+b.Addr, "BERTH_TOKEN="+b.Token, "IMAGE="+enginetest.Busybox(t))
	for _, c := range []struct {
		language, file string
		command        []string
	}{
		{"ts", "", []string{"node", filepath.Join(compiled, "out", "example.js")}},
		{"go", "main.go", []string{"go", "run", "main.go"}},
		{"python", "main.py", []string{"python3", "main.py"}},
		{"php", "main.php", []string{"php", "main.php"}},
	} {
		t.Run(c.language, func(t *testing.T) {
			text := block(string(page), c.language)
			id := regexp.MustCompile(`lobby-\w+`).FindString(text)
			require.NotEmpty(t, id)
			program := exec.Command(c.command[0], c.command[1:]...)
			program.Dir, program.Env = t.TempDir(), environment
			if c.file != "" {
				require.NoError(t, os.WriteFile(filepath.Join(program.Dir, c.file), []byte(text), 0o644))
			}
			output, err := program.CombinedOutput()
			require.NoError(t, err, "%s", output)
			require.Contains(t, []string{"installing", "ready", "starting", "running"}, strings.TrimSpace(string(output)))
			b.State(t, id, "running")
		})
	}
}

// TestOtherGenerator checks that @hey-api/openapi-ts generates a client without a warning, of the
// document in both versions, and that it compiles with what a panel calls first.
func TestOtherGenerator(t *testing.T) {
	directory(t)
	for _, document := range []string{"openapi.yaml", "openapi-3.0.yaml"} {
		t.Run(document, func(t *testing.T) {
			file, err := filepath.Abs("../../api/" + document)
			require.NoError(t, err)
			dir := strings.TrimSuffix(document, ".yaml")
			output, err := npm(t, "openapi-ts", "-i", file, "-o", dir)
			require.NoError(t, err, output)
			require.NotRegexp(t, `(?i)warn|⚠|skipp`, output)
			program := `import { getContainer, type State } from './` + dir + `/index.js';
const { data } = await getContainer({ path: { id: 'lobby' }, throwOnError: true });
data.state satisfies State;
data.conditions[0]?.reason satisfies string | undefined;
`
			write := exec.Command("./npm.sh", "sh", "-c", "cat > "+dir+".ts && tsc --strict --noEmit --skipLibCheck --target es2022 --module esnext --moduleResolution bundler --types node "+dir+".ts")
			write.Stdin = strings.NewReader(program)
			text, err := write.CombinedOutput()
			require.NoError(t, err, "%s", text)
		})
	}
}
