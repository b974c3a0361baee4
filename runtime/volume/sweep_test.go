package volume_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

// planting is a context that creates an entry with a temporary name at each step of a
// sweep.
type planting struct {
	context.Context
	t    *testing.T
	dir  string
	made int
}

func (p *planting) Err() error {
	if p.made++; p.made < 5000 {
		require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, fmt.Sprintf(".berth-tmp-%032x", p.made)), nil, 0o600))
	}
	return nil
}

// TestSweepOfGrowingVolumeEnds: a tenant creates temporary names as fast as a sweep
// removes them. The sweep ends, and the next scans remove the rest.
func TestSweepOfGrowingVolumeEnds(t *testing.T) {
	opt := options()
	opt.Limits.SweepSteps = 64 * 40
	b := newBox(t, opt)
	tenant := &planting{t.Context(), t, b.dir, 0}
	tenant.Err()
	require.NoError(t, b.Sweep(tenant, id))
	require.Less(t, tenant.made, 4000, "it goes on")
	left := len(b.names(t))
	require.Positive(t, left)
	for range 1 + left/10 {
		_, err := b.Scan(t.Context(), id)
		require.NoError(t, err)
	}
	require.Empty(t, b.names(t))
	b.put(t, ".berth-tmp-"+strings.Repeat("ab", 16), "planted")
	_, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, b.names(t), 1, "a volume that was swept to the end is not swept at each scan")
}

// TestSweepOfLargeTreeEnds: one tree takes several sweeps.
func TestSweepOfLargeTreeEnds(t *testing.T) {
	opt := options()
	opt.Limits.SweepSteps = 64 * 10
	b := newBox(t, opt)
	left := ".berth-tmp-" + strings.Repeat("ab", 16)
	for i := range 25 {
		b.put(t, fmt.Sprintf("%s/%d", left, i), "left")
	}
	sweeps := 0
	for len(b.names(t)) > 0 {
		before := len(b.names(t))
		_, err := b.Scan(t.Context(), id)
		require.NoError(t, err)
		require.Less(t, len(b.names(t)), before)
		require.GreaterOrEqual(t, len(b.names(t)), before-10)
		sweeps++
	}
	require.Positive(t, sweeps)
}
