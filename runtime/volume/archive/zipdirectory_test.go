package archive_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	v1 "berth/api/v1"
	"berth/runtime/volume/archive"
)

// TestZipBound checks that a Writer and Extract have the same bound: what a Writer
// wrote can be extracted, and a larger zip is refused before its first entry.
func TestZipBound(t *testing.T) {
	limits := limits()
	limits.ZipDirectoryBytes = 10_000
	var buf bytes.Buffer
	w, err := archive.NewWriter("zip", &buf, limits)
	require.NoError(t, err)
	added := 0
	for err == nil {
		if err = w.Add(file(fmt.Sprint("folder/file ", added), "x")); err == nil {
			added++
		}
	}
	require.ErrorContains(t, err, "Too many files for a zip")
	require.Equal(t, v1.SizeLimit, code(err))
	require.NoError(t, w.Close())
	require.Greater(t, added, 100)

	var got list
	require.NoError(t, extract(buf.Bytes(), limits, &got))
	require.Len(t, got, added)

	limits.ZipDirectoryBytes = 7_000
	got = nil
	require.Equal(t, v1.SizeLimit, code(extract(buf.Bytes(), limits, &got)))
	require.Empty(t, got)

	limits = archiveOf(added - 1)
	require.ErrorContains(t, extract(buf.Bytes(), limits, &got), "Archive has more than")
	require.Empty(t, got)
}

// forgedZip returns a zip with n entries in its directory, whose end states other
// numbers.
func forgedZip(n int, name string, entries, size uint64) []byte {
	le := binary.LittleEndian
	local := append([]byte("PK\x03\x04"), make([]byte, 26)...)
	record := append([]byte("PK\x01\x02"), make([]byte, 42)...)
	le.PutUint16(record[28:], uint16(len(name)))
	record = append(record, name...)
	zip := append(local, bytes.Repeat(record, n)...)
	end := len(zip)
	zip = append(zip, "PK\x06\x06"...)
	zip = append(zip, make([]byte, 52)...)
	le.PutUint64(zip[end+24:], entries)
	le.PutUint64(zip[end+32:], entries)
	le.PutUint64(zip[end+40:], size)
	le.PutUint64(zip[end+48:], uint64(len(local)))
	zip = append(zip, "PK\x06\x07\x00\x00\x00\x00"...)
	zip = le.AppendUint64(zip, uint64(end))
	zip = append(zip, "\x01\x00\x00\x00PK\x05\x06\x00\x00\x00\x00"...)
	zip = append(zip, bytes.Repeat([]byte{0xff}, 12)...)
	return append(zip, 0, 0)
}

// TestForgedZips extracts zips that state a small directory and have a large one, or
// the reverse.
func TestForgedZips(t *testing.T) {
	const one = 46 + 1
	limits := limits()
	limits.ZipDirectoryBytes = 4 << 20
	var got list
	require.NoError(t, extract(forgedZip(1, "a", 1, one), limits, &got), "an honest one")
	require.Len(t, got, 1)

	for name, c := range map[string]struct {
		zip  []byte
		code v1.Code
	}{
		"states too many entries":           {forgedZip(1, "a", 1<<40, one), v1.SizeLimit},
		"states too many bytes":             {forgedZip(100_000, "a", 100_000, 4<<20+1), v1.SizeLimit},
		"states more bytes than the file":   {forgedZip(1, "a", 1, 1<<40), v1.InvalidArchive},
		"states a negative number of bytes": {forgedZip(1, "a", 1, 1<<63+5), v1.InvalidArchive},
		"has more bytes than it states":     {forgedZip(6<<20/one, "a", 1, one), v1.SizeLimit},
		"has 65,536 entries more":           {forgedZip(65_537, "a", 1, one), v1.SizeLimit},
		"has no directory":                  {forgedZip(0, "", 1, 0), v1.InvalidArchive},
	} {
		limits := limits
		if strings.HasPrefix(name, "has 65,536") {
			limits.Entries = 65_536
		}
		got = nil
		require.Equal(t, c.code, code(extract(c.zip, limits, &got)), name)
		require.Empty(t, got, name)
	}
}

// TestZipMemory extracts zips at the bounds of the daemon, and measures the memory
// that their directories take.
func TestZipMemory(t *testing.T) {
	for name, n := range map[string]int{"a": 1_000_000, strings.Repeat("n", 60): 470_000} {
		zip := forgedZip(n, name, uint64(n), uint64(n*(46+len(name))))
		before := heap()
		held := int64(0)
		limits := limits()
		limits.Entries, limits.ZipDirectoryBytes = 1_000_000, 48<<20
		err := extract(zip, limits, each(func(archive.Entry) error {
			held = heap() - before
			return v1.ErrDiskFull // one is enough
		}))
		require.ErrorIs(t, err, v1.ErrDiskFull)
		t.Logf("%d names of %d bytes: %d MiB", n, len(name), held>>20)
		require.Less(t, held, int64(256<<20))
		require.Positive(t, held)
		runtime.KeepAlive(zip)
	}
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestZipDirectoriesTogether: the directories of all zips that are read or written have a bound together.
func TestZipDirectoriesTogether(t *testing.T) {
	shared := limits()
	shared.ZipDirectoryBytes, shared.ZipDirectories = 4<<20, semaphore.NewWeighted(4<<20)
	large := forgedZip(60_000, "a", 60_000, 60_000*47) // 2.8 MB
	busy := func(err error) {
		t.Helper()
		require.Equal(t, v1.TooManyOperations, code(err))
		require.ErrorContains(t, err, "try again later")
	}
	shared.Entries = 100_000
	first := true
	require.NoError(t, extract(large, shared, each(func(archive.Entry) error {
		if first {
			first = false
			busy(extract(large, shared, &list{}))
			w, err := archive.NewWriter("zip", io.Discard, shared)
			require.NoError(t, err)
			for i := 0; err == nil; i++ {
				require.Less(t, i, 100_000)
				err = w.Add(file(strings.Repeat("n", 200), ""))
			}
			busy(err)
			require.NoError(t, w.Close())
			require.NoError(t, extract(forgedZip(1, "a", 1, 47), shared, &list{}), "a small one has a place")
		}
		return nil
	})))
	require.True(t, shared.ZipDirectories.TryAcquire(4<<20), "all is given back")
	shared.ZipDirectories.Release(4 << 20)
	require.Equal(t, v1.SizeLimit, code(extract(forgedZip(60_000, "a", 60_000, 47), shared, &list{})), "it states less than it has")
}
