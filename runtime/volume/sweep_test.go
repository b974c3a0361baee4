package volume_test

import (
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSweep(t *testing.T) {
	b := newBox(t, options())
	left := ".berth-tmp-" + strings.Repeat("ab", 16)
	b.put(t, left+"/sub/file", "left")
	b.put(t, left[:len(left)-1]+"0", "left")
	b.put(t, left+"-1-2/x", "moved up by an older version")
	b.put(t, ".berth-tmp-short", "a tenant's")
	b.put(t, "sub/"+left, "a tenant's")
	require.NoError(t, b.Sweep(t.Context(), id))
	require.Equal(t, []string{".berth-tmp-short", "sub", "sub/" + left}, b.names(t))
}

// TestSweepKeepsActiveFiles sweeps while a file is being written.
func TestSweepKeepsActiveFiles(t *testing.T) {
	b := newBox(t, options())
	slow := sweeping{t: t, b: b, left: 3}
	require.NoError(t, b.Write(t.Context(), id, "f", &slow))
	require.Len(t, b.get(t, "f"), 3<<18)
}

type sweeping struct {
	t    *testing.T
	b    box
	left int
}

func (s *sweeping) Read(p []byte) (int, error) {
	require.NoError(s.t, s.b.Sweep(s.t.Context(), id))
	if s.left--; s.left < 0 {
		return 0, fs.ErrClosed
	}
	if s.left == 0 {
		return len(p), io.EOF
	}
	return len(p), nil
}
