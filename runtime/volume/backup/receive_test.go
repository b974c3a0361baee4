package backup_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
)

// stream is what a hostile node could send: members, and files with the checksums that it likes.
type stream struct {
	t   *testing.T
	buf bytes.Buffer
	z   *zstd.Encoder
	tar *tar.Writer
}

func newStream(t *testing.T) *stream {
	s := &stream{t: t}
	z, err := zstd.NewWriter(&s.buf)
	require.NoError(t, err)
	s.z, s.tar = z, tar.NewWriter(z)
	return s.add(tar.TypeDir, "./", "", "")
}

func (s *stream) add(kind byte, name, link, content string) *stream {
	h := &tar.Header{Format: tar.FormatPAX, Typeflag: kind, Name: name, Linkname: link, Mode: 0o700, Size: int64(len(content)), ModTime: time.Unix(1, 0)}
	require.NoError(s.t, s.tar.WriteHeader(h))
	_, err := s.tar.Write([]byte(content))
	require.NoError(s.t, err)
	return s
}

func (s *stream) record(name, value string) *stream {
	require.NoError(s.t, s.tar.WriteHeader(&tar.Header{Format: tar.FormatPAX, Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{name: value}}))
	return s
}

func (s *stream) file(name, content string) *stream {
	sum := sha256.Sum256([]byte(content))
	return s.add(tar.TypeReg, name, "", content).record("BERTH.sha256", "sha256:"+hex.EncodeToString(sum[:]))
}

// part adds a part of a file.
func (s *stream) part(name, offset, content string) *stream {
	h := &tar.Header{Format: tar.FormatPAX, Typeflag: tar.TypeReg, Name: name, Mode: 0o700, Size: int64(len(content)), ModTime: time.Unix(1, 0),
		PAXRecords: map[string]string{"BERTH.offset": offset}}
	require.NoError(s.t, s.tar.WriteHeader(h))
	_, err := s.tar.Write([]byte(content))
	require.NoError(s.t, err)
	sum := sha256.Sum256([]byte(content))
	return s.record("BERTH.sha256", "sha256:"+hex.EncodeToString(sum[:]))
}

func (s *stream) bytes() []byte {
	require.NoError(s.t, s.tar.Close())
	require.NoError(s.t, s.z.Close())
	return s.buf.Bytes()
}

// TestReceiveHostile: whatever a node sends, nothing outside the volume is read, changed or removed, a file that is not
// what was announced is not seen, and the bytes are bounded.
func TestReceiveHostile(t *testing.T) {
	for name, hostile := range map[string]func(s *stream){
		"a path above":                    func(s *stream) { s.file("../outside", "x") },
		"an absolute path":                func(s *stream) { s.file("/etc/outside", "x") },
		"a file below a link":             func(s *stream) { s.add(tar.TypeSymlink, "sub", "../secret", "").file("sub/outside", "x") },
		"a folder in the place of a link": func(s *stream) { s.add(tar.TypeSymlink, "up", "..", "").add(tar.TypeLink, "copy", "up/secret/key", "") },
		"a hard link to what is outside":  func(s *stream) { s.add(tar.TypeLink, "copy", "link/key", "") },
		"a removal above":                 func(s *stream) { s.record("BERTH.remove", "../secret") },
		"a removal of the root":           func(s *stream) { s.record("BERTH.remove", ".") },
		"a removal below a link":          func(s *stream) { s.record("BERTH.remove", "link/key") },
		"another checksum":                func(s *stream) { s.add(tar.TypeReg, "a", "", "x").record("BERTH.sha256", "sha256:00") },
		"no checksum":                     func(s *stream) { s.add(tar.TypeReg, "a", "", "x").file("b", "y") },
		"no checksum at the end":          func(s *stream) { s.add(tar.TypeReg, "a", "", "x") },
		"a part of a missing file":        func(s *stream) { s.part("b", "1", "x") },
		"a part behind the end":           func(s *stream) { s.part("a", "4", "x") },
		"a part before the start":         func(s *stream) { s.part("a", "-1", "x") },
		"a part of a link's target": func(s *stream) {
			s.add(tar.TypeSymlink, "l", "../secret/key", "").part("l", "1", "x")
		},
		"a part of a folder":                func(s *stream) { s.add(tar.TypeDir, "d/", "", "").part("d", "1", "x") },
		"a device":                          func(s *stream) { s.add(tar.TypeChar, "dev", "", "") },
		"more bytes than the volume may be": func(s *stream) { s.file("big", string(bytes.Repeat([]byte{1}, 64<<10))) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			to, secret := filepath.Join(dir, "to"), filepath.Join(dir, "secret")
			require.NoError(t, os.Mkdir(to, 0o700))
			require.NoError(t, os.Mkdir(secret, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(secret, "key"), []byte("secret"), 0o600))
			require.NoError(t, os.Symlink("../secret", filepath.Join(to, "link")))
			require.NoError(t, os.WriteFile(filepath.Join(to, "a"), []byte("old"), 0o600))
			s := newStream(t)
			hostile(s)
			require.Error(t, receive(to, bytes.NewReader(s.bytes()), 32<<10))
			key, err := os.ReadFile(filepath.Join(secret, "key"))
			require.NoError(t, err)
			require.Equal(t, "secret", string(key))
			var st unix.Stat_t
			require.NoError(t, unix.Stat(filepath.Join(secret, "key"), &st))
			require.EqualValues(t, 1, st.Nlink, "nothing links to it")
			old, err := os.ReadFile(filepath.Join(to, "a"))
			require.NoError(t, err)
			require.Equal(t, "old", string(old))
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, entries, 2, "nothing was created beside the volume")
		})
	}
	t.Run("a good stream", func(t *testing.T) { // the streams above fail for their reasons only
		to := t.TempDir()
		require.NoError(t, receive(to, bytes.NewReader(newStream(t).file("a", "x").bytes()), 32<<10))
	})
}

// TestSendWhatHasChangedSince: a file whose content was changed and whose time was set back is sent if it was changed since the
// time of the round before, and what is equal and older is not.
func TestSendWhatHasChangedSince(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	at := time.Unix(1_700_000_000, 5)
	p := filepath.Join(from, "world")
	require.NoError(t, os.WriteFile(p, []byte("one"), 0o600))
	require.NoError(t, os.Chtimes(p, at, at))
	move(t, from, to, backup.SendOptions{SendOptions: v1.SendOptions{Since: far}})
	since := time.Now().Add(-time.Hour)
	require.NoError(t, os.WriteFile(p, []byte("two"), 0o600))
	require.NoError(t, os.Chtimes(p, at, at))
	require.NoError(t, os.Chtimes(from, at, at))
	require.NoError(t, os.Chtimes(to, at, at))
	sent, _ := move(t, from, to, backup.SendOptions{SendOptions: v1.SendOptions{Since: far}})
	require.Zero(t, sent.Entries, "they look equal")
	sent, _ = move(t, from, to, backup.SendOptions{SendOptions: v1.SendOptions{Since: since}})
	require.EqualValues(t, 1, sent.Entries)
	text, err := os.ReadFile(filepath.Join(to, "world"))
	require.NoError(t, err)
	require.Equal(t, "two", string(text))
}
