package sftp

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/auth"
	"berth/api/limit"
	v1 "berth/api/v1"
)

func TestAuditOfFiles(t *testing.T) {
	h := newHarness(t)
	h.container("survival", h.volume)
	c := h.login("survival", h.mint(auth.Grant{Name: "alice", Containers: []string{"survival"}}))
	f, err := c.Create("a")
	require.NoError(t, err)
	for range 100 {
		_, err := f.Write([]byte("text"))
		require.NoError(t, err)
	}
	require.NoError(t, f.Chmod(0o600))
	require.NoError(t, f.Close())
	require.NoError(t, c.Chmod("a", 0o640))
	require.NoError(t, c.Chmod("a", 0o640), "no change")
	require.NoError(t, c.Chtimes("a", time.Now(), time.Now()))
	require.NoError(t, c.Truncate("a", 1))
	require.NoError(t, c.Mkdir("d"))
	require.NoError(t, c.Rename("a", "d/a"))
	require.NoError(t, c.PosixRename("d/a", "b"))
	require.NoError(t, c.Symlink("b", "berth_0123"))
	require.NoError(t, c.Remove("b"))
	require.NoError(t, c.RemoveDirectory("d"))
	require.Error(t, c.Mkdir("none/x"))
	require.Error(t, c.Chmod("none", 0o600))
	f, err = c.OpenFile("unchanged", os.O_CREATE|os.O_WRONLY)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	f, err = c.OpenFile("unchanged", os.O_WRONLY)
	require.NoError(t, err)
	require.NoError(t, f.Close(), "nothing was written")

	var got []string
	for _, e := range h.audit() {
		got = append(got, strings.TrimSpace(fmt.Sprint(e.Action, " ", strings.TrimPrefix(strings.TrimPrefix(e.Object, h.volume), "/"), " ", e.Status)))
		require.Equal(t, "alice", e.Actor.Name)
		require.Equal(t, v1.ViaSFTP, e.Actor.Via)
		require.Equal(t, h.audit()[0].RequestID, e.RequestID)
	}
	require.Equal(t, []string{"session.open  101", "file.write a 200", "file.chmod a 200", "file.touch a 200", "file.truncate a 200",
		"folder.create d 200", "file.rename a -> d/a 200", "file.rename d/a -> b 200", "link.create *** 200", "file.delete b 200",
		"folder.delete d 200", "file.write unchanged 200"}, got)
}

func TestAuditOfRefusedWrites(t *testing.T) {
	h := limited(t, 1<<20)
	c := h.open()
	f, err := c.Create("big")
	require.NoError(t, err)
	_, err = f.ReadFrom(bytes.NewReader(make([]byte, 2<<20)))
	require.Error(t, err)
	require.NoError(t, f.Close())
	last := h.audit()[len(h.audit())-1]
	require.Equal(t, "file.write", last.Action)
	require.Equal(t, 413, last.Status)
}

func TestUnrecordedChange(t *testing.T) {
	h := newHarness(t)
	c := h.open()
	f, err := c.Create("file")
	require.NoError(t, err)
	_ = f
	require.NoError(t, h.server.audit.flush())
	require.NoError(t, h.store.Close())
	require.ErrorContains(t, c.Mkdir("folder"), "could not be recorded")
	_, err = c.Create("other")
	require.ErrorContains(t, err, "could not be recorded")
}

// TestPaceOfChanges requires that a token which has made too many changes waits, and
// that another one does not.
func TestPaceOfChanges(t *testing.T) {
	h := newHarnessWith(t, func(s *Server) {
		s.changes = limit.NewRate(limit.Pace{Every: 10 * time.Millisecond, Burst: 5, Keys: 10})
	})
	c := h.open()
	began := time.Now()
	for i := range 30 {
		require.NoError(t, c.Mkdir(fmt.Sprint(i)))
	}
	require.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond, "30 changes, 5 ahead of one in 10 ms")
	require.Zero(t, h.server.changes.Left("", 1))
}
