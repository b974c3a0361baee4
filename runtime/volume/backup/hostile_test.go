package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
)

// member is a member of an archive that a test makes up.
type member struct {
	kind       byte
	name, text string // the content of a file, the target of a link
}

var rootMember = member{tar.TypeDir, "./", ""}

func fileMember(name string) member         { return member{tar.TypeReg, name, "content"} }
func folderMember(name string) member       { return member{tar.TypeDir, name + "/", ""} }
func symlinkMember(name, to string) member  { return member{tar.TypeSymlink, name, to} }
func hardLinkMember(name, to string) member { return member{tar.TypeLink, name, to} }

// build returns an archive of members, compressed.
func build(t testing.TB, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		h := &tar.Header{Typeflag: m.kind, Name: m.name, Mode: 0o755, Format: tar.FormatPAX}
		switch m.kind {
		case tar.TypeReg:
			h.Size = int64(len(m.text))
		case tar.TypeSymlink, tar.TypeLink:
			h.Linkname = m.text
		}
		require.NoError(t, w.WriteHeader(h))
		if m.kind == tar.TypeReg {
			_, err := io.WriteString(w, m.text)
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return compress(t, out.Bytes())
}

// hostile are archives that Write never produces, with a checksum that fits.
var hostile = map[string][]member{
	"no root":           {fileMember("a")},
	"root twice":        {rootMember, rootMember},
	"root is a file":    {fileMember(".")},
	"above":             {rootMember, fileMember("../a")},
	"above in between":  {rootMember, fileMember("a/../../b")},
	"absolute":          {rootMember, fileMember("/a")},
	"dots":              {rootMember, fileMember("..")},
	"empty name":        {rootMember, fileMember("")},
	"not clean":         {rootMember, fileMember("./a")},
	"long path":         {rootMember, fileMember(strings.Repeat("a/", 2048) + "a")},
	"long name":         {rootMember, fileMember(strings.Repeat("n", 256))},
	"no folder":         {rootMember, fileMember("a/b")},
	"through a link":    {rootMember, symlinkMember("a", "/tmp"), fileMember("a/b")},
	"through a file":    {rootMember, fileMember("a"), fileMember("a/b")},
	"folder left":       {rootMember, folderMember("a"), fileMember("b"), fileMember("a/c")},
	"file twice":        {rootMember, fileMember("a"), fileMember("a")},
	"folder twice":      {rootMember, folderMember("a"), folderMember("a")},
	"link twice":        {rootMember, symlinkMember("a", "b"), symlinkMember("a", "b")},
	"file over link":    {rootMember, symlinkMember("a", "/etc/passwd"), fileMember("a")},
	"hard link outside": {rootMember, hardLinkMember("a", "../outside")},
	"hard link to root": {rootMember, hardLinkMember("a", ".")},
	"hard link absent":  {rootMember, hardLinkMember("a", "b")},
	"hard link to link": {rootMember, symlinkMember("b", "/etc/passwd"), hardLinkMember("a", "b")},
	"through to file":   {rootMember, symlinkMember("b", "/etc"), hardLinkMember("a", "b/passwd")},
	"link to nothing":   {rootMember, symlinkMember("a", "")},
	"link to too much":  {rootMember, symlinkMember("a", strings.Repeat("a/", 2048))},
	"device":            {rootMember, {tar.TypeChar, "a", ""}},
	"FIFO":              {rootMember, {tar.TypeFifo, "a", ""}},
	"deep":              append([]member{rootMember}, nested(257)...),
}

// nested returns n folders in one another.
func nested(n int) (all []member) {
	for i := range n {
		all = append(all, folderMember(strings.Repeat("d/", i)+"d"))
	}
	return all
}

// TestHostileArchives: what Write never produces is refused, and nothing outside is created.
func TestHostileArchives(t *testing.T) {
	for name, members := range hostile {
		t.Run(name, func(t *testing.T) {
			archive := build(t, members...)
			dir, err := extract(t, archive, identify(archive, 4<<20))
			refused(t, err)
			list, err := os.ReadDir(filepath.Dir(dir))
			require.NoError(t, err)
			require.Len(t, list, 1)
		})
	}
	good := build(t, slices.Concat([]member{rootMember, fileMember("a"), hardLinkMember("b", "a")}, nested(256))...)
	_, err := extract(t, good, identify(good, 4<<20))
	require.NoError(t, err, "what the others are made from is valid")
}

func refused(t testing.TB, err error) {
	t.Helper()
	require.ErrorIs(t, err, &v1.Error{Code: v1.InvalidArchive})
	require.ErrorContains(t, err, "Backup is damaged: ")
}

// TestDamagedArchives: no altered archive is accepted.
func TestDamagedArchives(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		name := filepath.Join(dir, fmt.Sprint("folder", i%4), fmt.Sprint("file", i))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, bytes.Repeat([]byte(name), i*50), 0o644))
	}
	archive, _, a := write(t, dir, backup.Options{})
	try := func(data []byte, a v1.SnapshotArchive) {
		t.Helper()
		_, err := extract(t, data, a)
		refused(t, err)
	}
	_, err := extract(t, archive, a)
	require.NoError(t, err)
	plain := decompress(t, archive)
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		at, bit := r.IntN(len(archive)), byte(1)<<r.IntN(8)
		try(flip(archive, at, bit), a)
		try(archive[:at], a)
		try(archive[:at], identify(archive[:at], a.Bytes))
		try(append(bytes.Clone(archive), archive[:at]...), a)
	}
	other := identify(archive, a.Bytes)
	other.Checksum = identify(nil, 0).Checksum
	try(archive, other)
	longer := compress(t, append(plain, make([]byte, 512)...))
	try(longer, identify(longer, a.Bytes))
	twice := append(bytes.Clone(archive), archive...)
	try(twice, identify(twice, a.Bytes))
	trailing := append(bytes.Clone(archive), compress(t, nil)...)
	try(trailing, a)
	for _, bytes := range []int64{a.Bytes - 1, 0} {
		a := a
		a.Bytes = bytes
		try(archive, a)
	}
	try(nil, a)
	try([]byte("PK\x03\x04 a zip"), identify([]byte("PK\x03\x04 a zip"), a.Bytes))
}

func flip(data []byte, at int, bit byte) []byte {
	data = bytes.Clone(data)
	data[at] ^= bit
	return data
}

func decompress(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	defer z.Close()
	plain, err := io.ReadAll(z)
	require.NoError(t, err)
	return plain
}

func compress(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	require.NoError(t, err)
	return z.EncodeAll(data, nil)
}

// TestBomb: a small archive that extracts to a lot is refused early.
func TestBomb(t *testing.T) {
	archive := build(t, rootMember, member{tar.TypeReg, "a", strings.Repeat("0", 64<<20)})
	require.Less(t, len(archive), 64<<10)
	dir, err := extract(t, archive, identify(archive, 1<<20))
	refused(t, err)
	info, err := os.Stat(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(1<<20))
	_, err = extract(t, archive, identify(archive, 64<<20+4096))
	require.NoError(t, err)
}

// TestCanceled: the end of the context ends Extract, and the archive is not called damaged.
func TestCanceled(t *testing.T) {
	archive := build(t, rootMember, fileMember("a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := backup.Extract(ctx, bytes.NewReader(archive), identify(archive, 1<<20), open(t, t.TempDir()), backup.ExtractOptions{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = backup.Write(ctx, open(t, t.TempDir()), io.Discard, backup.Options{NameBytes: 1 << 20})
	require.ErrorIs(t, err, context.Canceled)
}

// FuzzExtract extracts arbitrary tars, whose checksum fits. Each is accepted or refused
// as damaged, and nothing is created beside its folder.
func FuzzExtract(f *testing.F) {
	for _, members := range hostile {
		f.Add(decompress(f, build(f, members...)))
	}
	f.Add(decompress(f, build(f, rootMember, fileMember("a"))))
	f.Fuzz(func(t *testing.T, plain []byte) {
		archive := compress(t, plain)
		dir, err := extract(t, archive, identify(archive, 1<<20))
		if err != nil {
			refused(t, err)
		}
		list, err := os.ReadDir(filepath.Dir(dir))
		require.NoError(t, err)
		require.Len(t, list, 1)
	})
}
