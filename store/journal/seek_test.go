package journal

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestSeekFindsEachRecord compares Seek and Read with a search through all records: some
// are as long as a record may be.
func TestSeekFindsEachRecord(t *testing.T) {
	j := open(t, Directory{Path: t.TempDir(), FileSize: 150 << 10, Files: 3})
	random := rand.New(rand.NewPCG(3, 4))
	const n = 1500
	for i := range n {
		l := v1.Line{Time: line(2 * i).Time, Data: bytes.Repeat([]byte("\\"), 1+random.IntN(100))}
		if random.IntN(100) == 0 {
			l.Data = bytes.Repeat([]byte("\\"), v1.MaxLine)
		}
		write(t, j, []v1.Line{l})
	}
	var newestFirst []Record
	for r, err := range j.Backward("", end(j)) {
		require.NoError(t, err)
		newestFirst = append(newestFirst, r)
	}
	require.Less(t, len(newestFirst), n, "some were rotated away")
	behind := end(j)
	for _, r := range newestFirst {
		for _, ns := range []time.Duration{-1, 0} {
			off, err := j.Seek("", r.Line.Time.Add(ns))
			require.NoError(t, err)
			require.Equal(t, r.Offset, off)
		}
		require.Equal(t, behind, r.End)
		b, err := j.Read("", r.Offset, end(j))
		require.NoError(t, err)
		got, ok := b.Next()
		require.True(t, ok)
		require.Equal(t, r, got)
		behind = r.Offset
	}
	off, err := j.Seek("", line(2*n).Time)
	require.NoError(t, err)
	require.Equal(t, end(j), off)
	count, err := j.Count(0, end(j))
	require.NoError(t, err)
	require.EqualValues(t, len(newestFirst), count)
	require.EqualValues(t, n, j.End().Line)
}

func TestSeekBesideDamage(t *testing.T) {
	dir := t.TempDir()
	j := open(t, in(dir))
	write(t, j, lines(0, 20_000))
	path := filepath.Join(dir, "mc", "server-00000000000000000000.log")
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	for off := int64(1); off < end(j); off += 50_000 { // the header of one record each
		_, err := file.WriteAt(bytes.Repeat([]byte("x"), 30), off)
		require.NoError(t, err)
	}
	require.NoError(t, file.Close())
	found := 0
	for i := range 2000 {
		i *= 10
		off, err := j.Seek("", line(i).Time)
		require.NoError(t, err)
		b, err := j.Read("", off, end(j))
		require.NoError(t, err)
		if r, ok := b.Next(); ok && r.Line.Time.Equal(line(i).Time) {
			found++
		}
	}
	require.GreaterOrEqual(t, found, 2000-2*int(end(j)/50_000+1))
}

func TestRecordKeepsBothTimes(t *testing.T) {
	for _, want := range []v1.Line{
		{Time: epoch, Shown: epoch.Add(1), Data: []byte("a\nb")},
		{Time: epoch, Shown: epoch.Add(time.Hour), Partial: true, Data: []byte{}},
		{Time: epoch, Shown: epoch.Add(2), Message: true, Data: []byte("2026-01-02T15:04:05.000000000Z ")},
	} {
		rec := appendRecord(nil, want)
		got, ok := parse(rec[:len(rec)-1])
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	rec := appendRecord(nil, v1.Line{Time: epoch, Shown: epoch.Add(1)})
	for _, cut := range []int{1, 2, 20, 31} {
		_, ok := parse(bytes.Clone(rec[:len(rec)-1-cut]))
		require.False(t, ok, cut)
	}
}
