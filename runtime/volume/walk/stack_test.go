package walk_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime/volume/walk"
)

// handles returns how many files the process has open.
func handles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

// down creates depth folders in each other below dir and enters them.
func down(t *testing.T, dir string, depth int) *walk.Stack {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", depth)), 0o755))
	s, err := walk.NewStack(open(t, dir))
	require.NoError(t, err)
	t.Cleanup(s.Close)
	for range depth {
		require.NoError(t, s.Enter("d"))
	}
	return s
}

// TestStackHoldsFewHandles goes down and up again, and reads the names of each folder
// halfway before it leaves it.
func TestStackHoldsFewHandles(t *testing.T) {
	const depth = 40
	top, before := t.TempDir(), handles(t)
	dir := top
	for range depth {
		for i := range 150 { // more than one block of names
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%0100d", i)), nil, 0o600))
		}
		dir = filepath.Join(dir, "d")
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	s, err := walk.NewStack(open(t, top))
	require.NoError(t, err)
	read := make([]int, depth+1)
	for i := range depth {
		for ; read[i] < 70; read[i]++ {
			_, err := s.Next()
			require.NoError(t, err)
		}
		require.NoError(t, s.Enter("d"))
		require.LessOrEqual(t, handles(t)-before, 10, "%d deep", i)
	}
	for i := depth; i >= 0; i-- {
		for _, err = s.Next(); err == nil; _, err = s.Next() {
			read[i]++
		}
		require.ErrorIs(t, err, io.EOF)
		if i > 0 {
			require.Equal(t, i, s.Depth())
			require.NoError(t, s.Leave())
		}
		require.LessOrEqual(t, handles(t)-before, 10, "%d deep", i)
	}
	for i, n := range read[:depth] {
		require.Equal(t, 151, n, "names of the folder %d deep", i)
	}
	s.Close()
	require.Equal(t, before+1, handles(t), "its first folder is the caller's")
}

// TestStackWithMovedFolders moves two folders of the stack away, and puts another one or
// a link in the place of the upper one. With a single one the stack finds back.
func TestStackWithMovedFolders(t *testing.T) {
	for _, place := range []string{"nothing", "folder", "link"} {
		t.Run(place, func(t *testing.T) {
			dir, outside := t.TempDir(), t.TempDir()
			s := down(t, dir, 30)
			require.NoError(t, os.Rename(filepath.Join(dir, "d/d/d/d/d"), filepath.Join(dir, "lower")))
			moved := filepath.Join(dir, "d/d/d")
			require.NoError(t, os.Rename(moved, filepath.Join(dir, "upper")))
			switch place {
			case "folder":
				require.NoError(t, os.MkdirAll(filepath.Join(moved, strings.Repeat("d/", 25)), 0o755))
			case "link":
				require.NoError(t, os.MkdirAll(filepath.Join(outside, strings.Repeat("d/", 25)), 0o755))
				require.NoError(t, os.Symlink(outside, moved))
			}
			var err error
			for err == nil && s.Depth() > 0 {
				err = s.Leave()
			}
			require.True(t, errors.Is(err, walk.ErrMoved), "%v", err)
			require.Equal(t, 2, s.Depth(), "the deepest folder that was not moved")
			require.NoError(t, s.Dir().Mkdir("here"))
			require.DirExists(t, filepath.Join(dir, "d/d/here"))
		})
	}
}

// TestStackWithMovedFolder moves one folder of the stack away.
func TestStackWithMovedFolder(t *testing.T) {
	dir := t.TempDir()
	s := down(t, dir, 30)
	require.NoError(t, os.Rename(filepath.Join(dir, "d/d/d/d/d"), filepath.Join(dir, "away")))
	for s.Depth() > 4 {
		require.NoError(t, s.Leave())
	}
	require.NoError(t, s.Dir().Mkdir("here"))
	require.DirExists(t, filepath.Join(dir, "d/d/d/d/here"))
}
