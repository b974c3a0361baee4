package sftp

import (
	"context"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/auth"
	v1 "berth/api/v1"
)

// brokenFiles are Files that panic, also in every call of their handles.
type brokenFiles struct {
	Files // nil: a call of another method panics
	opens bool
}

func (b brokenFiles) Stat(context.Context, string, string) (fs.FileInfo, error) { panic("broken") }

func (b brokenFiles) OpenFile(context.Context, string, string, v1.OpenMode) (v1.FileHandle, error) {
	if !b.opens {
		panic("broken")
	}
	return brokenHandle{}, nil
}

func (b brokenFiles) OpenFolder(context.Context, string, string) (v1.FolderHandle, error) {
	if !b.opens {
		panic("broken")
	}
	return brokenFolder{}, nil
}

// failingFiles are Files whose reads fail with an error of the host.
type failingFiles struct{ Files }

func (failingFiles) Stat(_ context.Context, _, path string) (fs.FileInfo, error) {
	return nil, &fs.PathError{Op: "stat", Path: path, Err: syscall.EIO}
}

// TestPaceOfFaults: what a tenant causes is logged at a pace, and long paths are clipped.
func TestPaceOfFaults(t *testing.T) {
	h := newHarnessWith(t, func(s *Server) { s.deps.Files = failingFiles{s.deps.Files} })
	c := h.open()
	path := strings.Repeat("a/", 1500) + "file"
	for range 200 {
		_, err := c.Stat(path)
		require.ErrorContains(t, err, "internal error")
	}
	text := h.log.String()
	require.Contains(t, text, "stat: input/output error")
	require.Less(t, strings.Count(text, "request failed"), 100)
	require.NotContains(t, text, strings.Repeat("a/", 200))
}

type brokenHandle struct{ v1.FileHandle }

func (brokenHandle) Changed() bool { return false }

type brokenFolder struct{ v1.FolderHandle }

// TestHandlersPanic: a request whose handler panics fails, and the session goes on.
func TestHandlersPanic(t *testing.T) {
	for _, opens := range []bool{false, true} {
		h := newHarnessWith(t, func(s *Server) { s.deps.Files = brokenFiles{opens: opens} })
		c := h.open()
		_, err := c.Lstat("a")
		require.ErrorContains(t, err, "internal error")
		_, err = c.Stat("a")
		require.ErrorContains(t, err, "internal error")
		_, err = c.ReadLink("a")
		require.ErrorContains(t, err, "internal error")
		_, err = c.StatVFS("a")
		require.ErrorContains(t, err, "internal error")
		require.ErrorContains(t, c.Mkdir("a"), "internal error")
		require.ErrorContains(t, c.PosixRename("a", "b"), "internal error")
		_, err = c.ReadDir("a")
		require.ErrorContains(t, err, "internal error")
		f, err := c.Create("a")
		if opens {
			require.NoError(t, err)
			_, err = f.WriteAt([]byte("x"), 0)
			require.ErrorContains(t, err, "internal error")
			_, err = f.ReadAt(make([]byte, 1), 0)
			require.ErrorContains(t, err, "internal error")
			err = f.Close()
		}
		require.ErrorContains(t, err, "internal error")
		require.Contains(t, h.log.String(), "(*handlers).Lstat", "the stack of the first one; the others come too fast")
		require.NoError(t, c.Close())
		h.eventually("all handles are freed", func() bool {
			return h.server.limits.handles.Used() == 0
		})
	}
}

// brokenSettings panic when they are read, if they are broken.
type brokenSettings struct {
	auth.Settings
	broken atomic.Bool
}

func (b *brokenSettings) Current() v1.Config {
	if b.broken.Load() {
		panic("broken")
	}
	return b.Settings.Current()
}

// TestConnectionPanics: a connection whose goroutines panic ends alone.
func TestConnectionPanics(t *testing.T) {
	var settings *brokenSettings
	h := newHarnessWith(t, func(s *Server) {
		settings = &brokenSettings{Settings: s.deps.Settings}
		s.deps.Settings = settings
	})
	settings.broken.Store(true)
	_, err := h.dial(h.volume, ssh.Password("x"))
	require.Error(t, err, "the login has panicked")
	settings.broken.Store(false)
	require.Contains(t, h.log.String(), "(*brokenSettings).Current")
	_, err = h.open().ReadDir(".")
	require.NoError(t, err)
}

// TestChannelPanics: a session whose channel panics ends alone.
func TestChannelPanics(t *testing.T) {
	var all sync.WaitGroup
	ended := make(chan error, 1)
	s := session{server: &Server{log: slog.New(slog.DiscardHandler)}, meter: &meter{}, ctx: t.Context(),
		cancel: func(reason error) { ended <- reason }, close: func() {}}
	channel := newOpened() // its Read panics
	s.accept(channel, &all)
	channel.requests <- &ssh.Request{Type: "subsystem", Payload: ssh.Marshal(struct{ Name string }{"sftp"})}
	require.Equal(t, errInternal, <-ended)
	close(channel.requests)
	all.Wait()
	require.Zero(t, s.channels.Load())
}
