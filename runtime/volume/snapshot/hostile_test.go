package snapshot_test

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
	"berth/runtime/volume/snapshot"
)

var rootMember = snapshot.Member{Path: ".", Kind: snapshot.Folder, Mode: 0o755}

func fileMember(path string) snapshot.Member {
	return snapshot.Member{Path: path, Kind: snapshot.File, Mode: 0o644, Content: "content"}
}

// hostile are archives that Write never produces, with a manifest and a checksum that
// fit.
var hostile = map[string][]snapshot.Member{
	"no root":           {fileMember("a")},
	"root twice":        {rootMember, rootMember},
	"root is a file":    {{Path: ".", Kind: snapshot.File}},
	"above":             {rootMember, fileMember("../a")},
	"above in between":  {rootMember, fileMember("a/../../b")},
	"absolute":          {rootMember, fileMember("/a")},
	"dots":              {rootMember, fileMember("..")},
	"empty name":        {rootMember, fileMember("")},
	"not clean":         {rootMember, fileMember("./a")},
	"NUL":               {rootMember, fileMember(strings.Repeat("a", 120) + "\x00b")},
	"long path":         {rootMember, fileMember(strings.Repeat("a/", 2048) + "a")},
	"long name":         {rootMember, fileMember(strings.Repeat("n", 256))},
	"no folder":         {rootMember, fileMember("a/b")},
	"through a link":    {rootMember, {Path: "a", Kind: snapshot.Symlink, Target: "/tmp"}, fileMember("a/b")},
	"through a file":    {rootMember, fileMember("a"), fileMember("a/b")},
	"folder left":       {rootMember, {Path: "a", Kind: snapshot.Folder}, fileMember("b"), fileMember("a/c")},
	"file twice":        {rootMember, fileMember("a"), fileMember("a")},
	"folder twice":      {rootMember, {Path: "a", Kind: snapshot.Folder}, {Path: "a", Kind: snapshot.Folder}},
	"link twice":        {rootMember, {Path: "a", Kind: snapshot.Symlink, Target: "b"}, {Path: "a", Kind: snapshot.Symlink, Target: "b"}},
	"file over link":    {rootMember, {Path: "a", Kind: snapshot.Symlink, Target: "/etc/passwd"}, fileMember("a")},
	"no target":         {rootMember, {Path: "a", Kind: snapshot.Symlink}},
	"long target":       {rootMember, {Path: "a", Kind: snapshot.Symlink, Target: strings.Repeat("t", 4096)}},
	"hard link outside": {rootMember, {Path: "a", Kind: snapshot.HardLink, Target: "../outside"}},
	"hard link to root": {rootMember, {Path: "a", Kind: snapshot.HardLink, Target: "."}},
	"hard link absent":  {rootMember, {Path: "a", Kind: snapshot.HardLink, Target: "b"}},
	"hard link to link": {rootMember, {Path: "b", Kind: snapshot.Symlink, Target: "/etc/passwd"}, {Path: "a", Kind: snapshot.HardLink, Target: "b"}},
	"through to file":   {rootMember, {Path: "b", Kind: snapshot.Symlink, Target: "/etc"}, {Path: "a", Kind: snapshot.HardLink, Target: "b/passwd"}},
	"device":            {rootMember, {Path: "a", Kind: '3'}},
	"FIFO":              {rootMember, {Path: "a", Kind: '6'}},
	"mode":              {rootMember, {Path: "a", Kind: snapshot.Folder, Mode: 0o170000}},
	"manifest lies":     {rootMember, {Path: "a", Kind: snapshot.File, Content: "x", Lie: true}},
	"manifest first":    {rootMember, fileMember(snapshot.ManifestName)},
	"empty map":         {rootMember, {Path: "a", Kind: snapshot.File, Parts: []int64{}, Size: 10}},
	"extents overlap":   {rootMember, {Path: "a", Kind: snapshot.File, Parts: []int64{0, 5, 3, 2}, Content: "content", Size: 5}},
	"extents touch":     {rootMember, {Path: "a", Kind: snapshot.File, Parts: []int64{0, 5, 5, 2}, Content: "content", Size: 7}},
	"extents backward":  {rootMember, {Path: "a", Kind: snapshot.File, Parts: []int64{5, 2, 0, 5}, Content: "content", Size: 7}},
	"extent too long":   {rootMember, {Path: "a", Kind: snapshot.File, Parts: []int64{9, 7}, Content: "content", Size: 10}},
	"extent after end":  {rootMember, {Path: "a", Kind: snapshot.File, Parts: []int64{90, 7}, Content: "content", Size: 10}},
	"end is missing":    {rootMember, {Path: "a", Kind: snapshot.File, Parts: []int64{1, 7}, Content: "content", Size: 10}},
	"map has too much":  {rootMember, {Path: "a", Kind: snapshot.File, Parts: []int64{1, 9}, Content: "content", Size: 10}},
	"map has too few":   {rootMember, {Path: "a", Kind: snapshot.File, Parts: []int64{4, 6}, Content: "content", Size: 10}},
	"huge extent":       {rootMember, {Path: "a", Kind: snapshot.File, Parts: []int64{1, 1<<62 - 1}, Content: "content", Size: 1 << 62}},
}

// TestHostileArchives: what Write never produces is refused, by Verify as far as it does
// not need a tree, and nothing outside is created.
func TestHostileArchives(t *testing.T) {
	for name, members := range hostile {
		t.Run(name, func(t *testing.T) {
			archive, size := snapshot.Make(members...)
			dir, err := extract(t, archive, identify(archive, size))
			refused(t, err)
			list, err := os.ReadDir(filepath.Dir(dir))
			require.NoError(t, err)
			require.Len(t, list, 1)
		})
	}
	good, size := snapshot.Make(rootMember, fileMember("a"), snapshot.Member{Path: "b", Kind: snapshot.File, Parts: []int64{3, 7}, Content: "content", Size: 10})
	_, err := extract(t, good, identify(good, size))
	require.NoError(t, err, "what the others are made from is valid")
}

func refused(t testing.TB, err error) {
	t.Helper()
	require.ErrorIs(t, err, &v1.Error{Code: v1.InvalidArchive})
}

// TestDamagedArchives: no altered archive is accepted, also if its checksum fits.
func TestDamagedArchives(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		name := filepath.Join(dir, fmt.Sprint("folder", i%4), fmt.Sprint("file", i))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, bytes.Repeat([]byte(name), i*50), 0o644))
	}
	archive, _, a := write(t, dir, snapshot.Options{})
	verify := func(data []byte, a v1.SnapshotArchive) error {
		return snapshot.Verify(context.Background(), bytes.NewReader(data), a, nil)
	}
	require.NoError(t, verify(archive, a))
	plain := decompress(t, archive)
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		at, bit := r.IntN(len(archive)), byte(1)<<r.IntN(8)
		refused(t, verify(flip(archive, at, bit), a))
		refused(t, verify(archive[:at], a))
		refused(t, verify(archive[:at], identify(archive[:at], a.Bytes)))
		refused(t, verify(append(bytes.Clone(archive), archive[:at]...), a))
		at = r.IntN(len(plain))
		changed := compress(t, flip(plain, at, bit))
		refused(t, verify(changed, identify(changed, a.Bytes)))
		cut := compress(t, plain[:at])
		refused(t, verify(cut, identify(cut, a.Bytes)))
	}
	again := compress(t, plain)
	other := identify(again, a.Bytes)
	require.NoError(t, verify(again, other))
	other.Checksum = a.Checksum
	refused(t, verify(again, other))
	root := plain[:3*512]
	more := compress(t, slices.Concat(plain[:len(plain)-2*512], root, make([]byte, 2*512)))
	refused(t, verify(more, identify(more, a.Bytes)))
	longer := compress(t, append(plain, make([]byte, 512)...))
	refused(t, verify(longer, identify(longer, a.Bytes)))
	trailing := append(bytes.Clone(archive), compress(t, nil)...)
	refused(t, verify(trailing, a))
	for _, bytes := range []int64{a.Bytes - 1, a.Bytes + 1, 0} {
		a := a
		a.Bytes = bytes
		refused(t, verify(archive, a))
	}
	refused(t, verify(nil, a))
	refused(t, verify([]byte("PK\x03\x04 a zip"), identify([]byte("PK\x03\x04 a zip"), a.Bytes)))
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

// TestForeignArchives: a tar.zst of another program is refused.
func TestForeignArchives(t *testing.T) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range []string{"./", "a"} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Format: tar.FormatPAX}))
	}
	require.NoError(t, w.Close())
	archive := compress(t, out.Bytes())
	_, err := extract(t, archive, identify(archive, 1<<20))
	refused(t, err)
}

// TestBomb: a small archive that extracts to a lot is refused early.
func TestBomb(t *testing.T) {
	archive, size := snapshot.Make(rootMember, snapshot.Member{Path: "a", Kind: snapshot.File, Content: strings.Repeat("0", 64<<20)})
	require.Less(t, len(archive), 64<<10)
	dir, err := extract(t, archive, identify(archive, 1<<20))
	refused(t, err)
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, list, "nothing was extracted")
	_, err = extract(t, archive, identify(archive, size))
	require.NoError(t, err)
}

// FuzzExtract extracts arbitrary tars, whose checksum fits. Each is accepted or refused
// as damaged, and nothing is created beside its folder.
func FuzzExtract(f *testing.F) {
	for _, members := range hostile {
		archive, _ := snapshot.Make(members...)
		f.Add(decompress(f, archive))
	}
	good, _ := snapshot.Make(rootMember, fileMember("a"), snapshot.Member{Path: "b", Kind: snapshot.File, Parts: []int64{3, 7}, Content: "content", Size: 10})
	f.Add(decompress(f, good))
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
