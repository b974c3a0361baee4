package docker

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"berth/hack/test/enginetest"
	"berth/runtime"
	"berth/runtime/keeper"
)

// TestEngineSeesTheSameDirectory: the check passes where the engine sees what berth sees, after a creation
// and, for an engine that berth has just met, before a start.
func TestEngineSeesTheSameDirectory(t *testing.T) {
	r := newRig(t)
	s := r.spec("same", "sleep 1000")
	_, err := r.Create(t.Context(), s)
	require.NoError(t, err)
	require.True(t, r.shared.Load())
	next := r.twin(t)
	require.NoError(t, next.Start(t.Context(), s.Name))
	require.True(t, next.shared.Load())
}

// TestEngineWithoutTheDirectory: the working directory of the engine's process is another than the test's,
// so that a path through it exists for the test only, as it does where berth is in a container.
func TestEngineWithoutTheDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	i := enginetest.StartIsolated(t)
	t.Chdir(t.TempDir())
	r := newRig(t, func(c *Config) { c.Host, c.Volumes = i.Host(), "/proc/self/cwd/volumes" })
	r.image = i.Busybox(t)
	require.NoError(t, os.Mkdir("volumes", 0o755))
	s := r.spec("other", "true")
	_, err := r.Create(t.Context(), s)
	require.ErrorIs(t, err, runtime.ErrHost)
	require.ErrorContains(t, err, "the engine does not see a directory that berth sees")
	_, err = r.Inspect(t.Context(), s.Name)
	require.ErrorIs(t, err, runtime.ErrNotFound, "none is left")
}

// TestEngineSeesAnotherDirectory: the path exists for both, and the keeper that the engine sees there is another
// file than that of this process.
func TestEngineSeesAnotherDirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, path.Base(keeper.Path))
	var theirs func() (time.Time, bool)
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"Id":"1","Mounts":[{"Destination":%q,"Source":%q}]}`, keeper.Dir, dir)
			return
		}
		mtime, found := theirs()
		if !found && r.URL.Query().Get("path") == keeper.Path {
			message404(w, "Could not find the file")
			return
		}
		stat, err := json.Marshal(container.PathStat{Name: "keeper", Mtime: mtime})
		assert.NoError(t, err)
		w.Header().Set("X-Docker-Container-Path-Stat", base64.StdEncoding.EncodeToString(stat))
	})
	same := func() (time.Time, bool) {
		info, err := os.Stat(file)
		if err != nil {
			return time.Time{}, false
		}
		return info.ModTime(), true
	}
	copied := func() (time.Time, bool) { return time.Now().Add(-time.Hour), true }
	missing := func() (time.Time, bool) { return time.Time{}, false }
	const other = "than berth: run berth outside of a container"

	theirs = missing
	require.NoError(t, e.checkShared(t.Context(), "1"), "both have none")
	theirs = copied
	require.ErrorContains(t, e.checkShared(t.Context(), "1"), other, "only the engine has one")
	require.NoError(t, os.WriteFile(file, nil, 0o755))
	for _, theirs = range []func() (time.Time, bool){copied, missing} {
		err := e.checkShared(t.Context(), "1")
		require.ErrorIs(t, err, runtime.ErrHost)
		require.ErrorContains(t, err, other)
		require.False(t, e.shared.Load())
	}
	theirs = same
	require.NoError(t, e.checkShared(t.Context(), "1"))
	require.True(t, e.shared.Load())
}

// TestVolumesThatCannotBeExecuted: the first process of a container lies beside the volumes. If their file system is
// mounted with noexec, 20.10 mounts its folder without, and only programs in volumes do not run; for newer engines
// it is the host's fault that nothing does.
func TestVolumesThatCannotBeExecuted(t *testing.T) {
	volumes := t.TempDir()
	require.NoError(t, unix.Mount("berth-test", volumes, "tmpfs", unix.MS_NOEXEC, "size=16m"))
	t.Cleanup(func() { _ = unix.Unmount(volumes, unix.MNT_DETACH) })
	require.NoError(t, os.WriteFile(filepath.Join(volumes, "game"), []byte("#!/bin/sh\necho played\n"), 0o755))
	r := newRig(t, func(c *Config) { c.Volumes = volumes })
	s := r.spec("noexec", "(echo up; /v/game) 2>&1")
	s.Mounts = []runtime.Mount{{Source: volumes, Target: "/v"}}
	id, err := r.Create(t.Context(), s)
	require.NoError(t, err)
	if err := r.Start(t.Context(), s.Name); err != nil {
		require.ErrorIs(t, err, runtime.ErrHost)
		require.ErrorContains(t, err, "mount it without noexec")
		return
	}
	lines := joinLines(r.read(t, id, time.Time{}, true))
	require.Len(t, lines, 2)
	require.Equal(t, "up", lines[0])
	require.Contains(t, lines[1], "Permission denied")
}

// TestHostThatCannotCreate: what prevents every creation is the host's fault.
func TestHostThatCannotCreate(t *testing.T) {
	options := `["name=seccomp,profile=default"]`
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/info"):
			fmt.Fprintf(w, `{"SecurityOptions":%s}`, options)
		case strings.HasSuffix(r.URL.Path, "/networks/berth"):
			fmt.Fprint(w, `{"Name":"berth","Id":"7c1","Driver":"bridge","Options":{"`+optionICC+`":"false"}}`)
		default:
			message404(w, "No such image: x")
		}
	})
	s := runtime.Spec{Name: mc, Command: []string{"true"}, Workdir: "/"}
	_, err := e.Create(t.Context(), s)
	require.ErrorIs(t, err, runtime.ErrImageNotFound)
	options = `["name=seccomp,profile=default","name=userns"]`
	e.host.Store(nil)
	_, err = e.Create(t.Context(), s)
	require.ErrorIs(t, err, runtime.ErrHost)
	require.ErrorContains(t, err, "remove userns-remap")
	require.ErrorIs(t, e.Probe(t.Context(), s), runtime.ErrHost)

	options = `[]`
	require.NoError(t, os.RemoveAll(filepath.Join(e.cfg.Volumes, ".keeper")))
	e.cfg.Keeper = filepath.Join(t.TempDir(), "none")
	_, err = e.Create(t.Context(), s)
	require.ErrorIs(t, err, runtime.ErrHost)
	require.ErrorContains(t, err, "install berth-keeper beside berth")
}
