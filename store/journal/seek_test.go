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

// TestSeekFindsEachRecord compares Seek and At with a search through all records: some
// are as long as a record may be.
func TestSeekFindsEachRecord(t *testing.T) {
	j := open(t, Directory{Path: t.TempDir(), FileSize: 300 << 10, Files: 3})
	random := rand.New(rand.NewPCG(3, 4))
	const n = 1500
	for i := range n {
		l := v1.Line{Time: line(2 * i).Time, Data: bytes.Repeat([]byte("\\"), 1+random.IntN(100))}
		if random.IntN(100) == 0 {
			l.Data = bytes.Repeat([]byte("\\"), maxData)
		}
		write(t, j, []v1.Line{l})
	}
	kept := map[int64]int64{} // offset by time
	var newestFirst []Record
	for r, err := range j.Backward(j.End()) {
		require.NoError(t, err)
		kept[r.Line.Time.UnixNano()] = r.Offset
		newestFirst = append(newestFirst, r)
	}
	require.Less(t, len(kept), n, "some were rotated away")
	behind := j.End()
	for _, r := range newestFirst {
		for _, ns := range []time.Duration{-1, 0} {
			off, err := j.Seek(r.Line.Time.Add(ns))
			require.NoError(t, err)
			require.Equal(t, r.Offset, off)
		}
		l, end, ok, err := j.At(r.Line.Time)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, r.Line.Time, l.Time)
		require.Equal(t, behind, end)
		_, _, ok, err = j.At(r.Line.Time.Add(1))
		require.NoError(t, err)
		require.False(t, ok)
		behind = r.Offset
	}
	off, err := j.Seek(line(2 * n).Time)
	require.NoError(t, err)
	require.Equal(t, j.End(), off)
	oldest, _ := j.Oldest()
	count, err := j.Count(oldest, j.End())
	require.NoError(t, err)
	require.EqualValues(t, len(kept), count)
}

func TestSeekBesideDamage(t *testing.T) {
	dir := t.TempDir()
	j := open(t, in(dir))
	write(t, j, lines(0, 20_000))
	path := filepath.Join(dir, "mc", "server.log")
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	for off := int64(1); off < j.End(); off += 50_000 { // the header of one record each
		_, err := file.WriteAt(bytes.Repeat([]byte("x"), 30), off)
		require.NoError(t, err)
	}
	require.NoError(t, file.Close())
	found := 0
	for i := range 2000 {
		i *= 10
		l, _, ok, err := j.At(line(i).Time)
		require.NoError(t, err)
		if ok {
			require.Equal(t, line(i).Time, l.Time)
			found++
		}
	}
	require.GreaterOrEqual(t, found, 2000-2*int(j.End()/50_000+1))
}

// TestRotationRecordsWhatItRemoves reopens the journal after each rotation.
func TestRotationRecordsWhatItRemoves(t *testing.T) {
	dir := Directory{Path: t.TempDir(), FileSize: 2000, Files: 2}
	j := open(t, dir)
	begin(t, j, "c1")
	_, removed := j.Oldest()
	require.Zero(t, removed)
	for i := range 500 {
		write(t, j, lines(i, i+1))
		again := open(t, dir)
		for _, x := range []*Journal{j, again} {
			require.Equal(t, line(i).Time.UnixNano(), x.Last())
			_, removed := x.Oldest()
			if oldest := tail(t, x, 1000)[0].Time; oldest.After(epoch) {
				require.Equal(t, oldest.Add(-time.Millisecond).UnixNano(), removed)
			} else {
				require.Zero(t, removed)
			}
		}
		require.Equal(t, "c1", begin(t, again, "c1").Container)
	}
}

func TestCheckpointOfAnOlderBerth(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.run")
	require.NoError(t, os.WriteFile(path, []byte("c1 whole 7\n"), 0o600))
	require.Equal(t, checkpoint{container: "c1", complete: true, after: 7}, readCheckpoint(path))
	c := checkpoint{container: "c1", after: 7, removed: 9}
	require.NoError(t, c.write(path))
	require.Equal(t, c, readCheckpoint(path))
}

func TestRecordKeepsBothTimes(t *testing.T) {
	for _, want := range []v1.Line{
		{Time: epoch, Shown: epoch.Add(1), Data: []byte("a\nb")},
		{Time: epoch, Shown: epoch.Add(time.Hour), Partial: true, Data: []byte{}},
		{Time: epoch, Shown: epoch.Add(2), Message: true, Data: []byte("2026-01-02T15:04:05.000000000Z ")},
	} {
		rec := AppendRecord(nil, want)
		at, _, ok := parseHeader(rec)
		require.True(t, ok)
		require.Equal(t, want.Shown, at)
		got, ok := parse(rec[:len(rec)-1])
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	rec := AppendRecord(nil, v1.Line{Time: epoch, Shown: epoch.Add(1)})
	for _, cut := range []int{1, 2, 20, 31} {
		_, ok := parse(bytes.Clone(rec[:len(rec)-1-cut]))
		require.False(t, ok, cut)
	}
}
