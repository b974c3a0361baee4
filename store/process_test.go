package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

func child(t *testing.T, name, dir string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "STORE_CHILD="+name, "STORE_DIR="+dir,
		"GORACE=atexit_sleep_ms=0") // a race build sleeps for a second otherwise
	return cmd
}

// writeUntilKilled creates containers from eight goroutines, and prints the id
// of each once it is acknowledged.
func writeUntilKilled(dir string) {
	s, err := Open(dir, Options{})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	base := s.Revision()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d-%d", base, w, i)
				err := s.Update(func(tx *Tx) error {
					Emit(tx, v1.Event{Container: id, Event: v1.EventState, Data: "ready"})
					return Containers.Create(tx, id, v1.ContainerSpec{InstallScript: strings.Repeat("x", 500)})
				})
				if err != nil {
					fmt.Println("error", err)
					return
				}
				os.Stdout.WriteString(id + "\n")
			}
		})
	}
	wg.Wait()
}

func TestKilledProcessLosesNothing(t *testing.T) {
	dir := t.TempDir()
	acknowledged := map[string]bool{}
	for round := range 4 {
		cmd := child(t, "write", dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(out)
		for range 50 + 170*round {
			id, err := lines.ReadString('\n')
			require.NoError(t, err)
			acknowledged[strings.TrimSpace(id)] = true
		}
		require.NoError(t, cmd.Process.Kill())
		rest, _ := io.ReadAll(lines)
		whole := rest[:strings.LastIndexByte(string(rest), '\n')+1]
		for id := range strings.FieldsSeq(string(whole)) {
			acknowledged[id] = true
		}
		_ = cmd.Wait() // "signal: killed"
		requireWhole(t, dir, acknowledged)
	}
}

// requireWhole opens the store and looks for everything that was acknowledged,
// and for gaps.
func requireWhole(t *testing.T, dir string, acknowledged map[string]bool) {
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, s.View(func(tx *Tx) error {
		list, err := Containers.List(tx)
		require.NoError(t, err)
		require.Len(t, list, int(s.Revision()), "a revision for each create")
		seen := map[uint64]bool{}
		for _, o := range list {
			seen[o.Meta.Revision] = true
			delete(acknowledged, o.Meta.ID)
		}
		require.Len(t, seen, len(list))
		require.Empty(t, acknowledged, "acknowledged, but lost")
		for _, o := range list {
			acknowledged[o.Meta.ID] = true
		}
		oldest, newest := EventRange(tx)
		require.EqualValues(t, 1, oldest)
		require.EqualValues(t, len(list), newest)
		events, err := ReadEvents(tx, 0, len(list)+1)
		require.Len(t, events, len(list))
		return err
	}))
	require.NoError(t, s.Close())
}

// openAndSay prints what became of Open, and ends when its input does.
func openAndSay(dir string) {
	s, err := Open(dir, Options{})
	fmt.Println(describe(err))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Println(describe(s.Close()))
}

func describe(err error) string {
	for name, target := range map[string]error{"locked": ErrLocked, "damaged": ErrDamaged, "full": ErrDiskFull} {
		if errors.Is(err, target) {
			return name
		}
	}
	if err != nil {
		return "failed"
	}
	return "opened"
}

func TestSecondProcessIsToldWhoHoldsTheStore(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	out, err := child(t, "open", dir).Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "locked\n")
	require.Contains(t, string(out), "another berth holds the store")
	require.Contains(t, string(out), "stop it first")
	require.FileExists(t, filepath.Join(dir, reserveName), "the other process has touched nothing")
	require.NoError(t, create(s, "still-works"))
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrLocked)
}

// runOutOfFiles updates with no file descriptor left, and then with some.
func runOutOfFiles(dir string) {
	s, err := Open(dir, Options{})
	fmt.Println(describe(err))
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64})
	var open []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		open = append(open, f)
	}
	fmt.Println(errors.Is(create(s, "none"), ErrFailed), s.View(func(*Tx) error { return nil }))
	for _, f := range open {
		f.Close()
	}
	fmt.Println(create(s, "some"), s.Revision(), s.Close())
}

func TestWithoutFileDescriptorsUpdatesAreRefusedUntilThereAreSome(t *testing.T) {
	out, err := child(t, "files", t.TempDir()).Output()
	require.NoError(t, err)
	require.Equal(t, "opened\ntrue <nil>\n<nil> 1 <nil>\n", string(out))
}

// TestALockIsWaitedFor: whoever holds it may be about to end.
func TestALockIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	holder := child(t, "open", dir)
	in, err := holder.StdinPipe()
	require.NoError(t, err)
	out, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "opened\n", line)
	require.NoError(t, in.Close()) // it ends now
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_ = holder.Wait()
}
