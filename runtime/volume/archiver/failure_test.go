package archiver_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume/archiver"
)

// script is a program that does something else than berth.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	return path
}

// TestProcessFails: a process that ends in any wrong way is a failed backup with a reason.
func TestProcessFails(t *testing.T) {
	const result = `echo '{"written": 5, "result": {"Files": 1, "Size": 5}}' >&4; `
	for name, c := range map[string]struct{ program, reason string }{
		"crash":      {script(t, "echo 'panic: at the disco' >&2; echo trace >&2; exit 2"), "failed: exit status 2: panic: at the disco"},
		"verbose":    {script(t, "yes | head -c 1000000 >&2; exit 2"), "failed: exit status 2: y"},
		"no result":  {script(t, "echo archive"), "failed: it sent no result"},
		"no JSON":    {script(t, "echo archive; echo archive >&4"), "failed: it sent no result"},
		"after all":  {script(t, "printf 12345; "+result+"exit 3"), "failed: exit status 3"},
		"truncated":  {script(t, "printf 1234; "+result), "failed: it sent no result"},
		"longer":     {script(t, "printf 123456; "+result), "failed: it sent no result"},
		"two sizes":  {script(t, `printf 12345; echo '{"written": 5, "result": {"Size": 4}}' >&4`), "failed: it sent no result"},
		"too much":   {script(t, `echo '{"written": 9000000000000000000}' >&4; exec sleep 1000`), "reports a wrong size"},
		"less":       {script(t, `echo '{"written": 5}{"written": 4}' >&4; exec sleep 1000`), "reports a wrong size"},
		"no program": {"/nonexistent", "no such file"},
		"not ours":   {"/bin/true", "failed: it sent no result"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, w := range []io.Writer{&bytes.Buffer{}, newFile(t)} {
				b := newBox(t, t.TempDir(), c.program)
				_, err := b.write(t.Context(), w)
				require.ErrorContains(t, err, c.reason)
				require.LessOrEqual(t, b.log.Len(), 10_000)
				require.Empty(t, children(t, os.Getpid()))
			}
		})
	}
	for _, w := range []io.Writer{&bytes.Buffer{}, newFile(t)} {
		got, err := newBox(t, t.TempDir(), script(t, "printf 12345; "+result)).write(t.Context(), w)
		require.NoError(t, err)
		require.Equal(t, v1.Snapshot{Files: 1, Size: 5}, got)
	}
}

// TestErrors: an error keeps what decides over the message of a backup.
func TestErrors(t *testing.T) {
	b := newBox(t, t.TempDir(), script(t, `echo '{"error": {"code": "size_limit_exceeded", "text": "Too large"}}' >&4; exit 1`))
	_, err := b.write(t.Context(), io.Discard)
	require.Equal(t, &v1.Error{Code: v1.SizeLimit, Message: "Too large"}, err)

	b = newBox(t, t.TempDir(), script(t, `echo '{"error": {"op": "write", "errno": 28, "text": "write: no space left"}}' >&4; exit 1`))
	_, err = b.write(t.Context(), io.Discard)
	require.ErrorIs(t, err, syscall.ENOSPC)

	b = newBox(t, t.TempDir(), archiver.Self)
	b.SetLimit(id, 1, v1.Usage{})
	f, err := os.Create(filepath.Join(b.dir, "file"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for i := range 80 {
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, strconv.Itoa(i)), make([]byte, 1<<20), 0o600))
	}
	_, err = b.write(t.Context(), io.Discard)
	require.ErrorIs(t, err, &v1.Error{Code: v1.SizeLimit})
	require.ErrorContains(t, err, "larger than its size limit")
	require.Empty(t, b.log, "it is no fault")
}

// TestByHand: a person who starts the command learns what to do instead.
func TestByHand(t *testing.T) {
	out, err := exec.Command(archiver.Self, archiver.Command).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "use berth backup create")
}

func pidText(pid int) string { return strconv.Itoa(pid) }

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// read returns a file of a process.
func read(t *testing.T, pid int, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", pidText(pid), name))
	require.NoError(t, err)
	return string(text)
}

// list returns the names in a folder of a process.
func list(t *testing.T, pid int, name string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("/proc", pidText(pid), name))
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// children returns the processes that a process started and has not waited for.
func children(t *testing.T, of int) (pids []int) {
	t.Helper()
	for _, thread := range list(t, of, "task") {
		text, err := os.ReadFile(filepath.Join("/proc", pidText(of), "task", thread, "children"))
		if err != nil {
			continue // the thread has ended
		}
		for _, pid := range strings.Fields(string(text)) {
			pids = append(pids, number(t, pid))
		}
	}
	return pids
}

// alive reports whether a process runs.
func alive(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", pidText(pid), "stat"))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(state, "Z")
}
