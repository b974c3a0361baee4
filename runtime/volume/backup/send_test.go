package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
	"berth/runtime/volume/fsys"
)

const moveNames = 64 << 20

// far is a time before which every entry has changed last: trees are compared by what is listed.
var far = time.Now().AddDate(100, 0, 0)

func list(t require.TestingT, dir string) ([]byte, v1.TreeSum) {
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	var listing bytes.Buffer
	tree, err := backup.ListTree(context.Background(), root, &listing, moveNames, v1.LowPriority)
	require.NoError(t, err)
	return listing.Bytes(), tree
}

// move makes the tree in to equal to that in from, and returns what was sent.
func move(t require.TestingT, from, to string, opt backup.SendOptions) (v1.Sent, []byte) {
	listing, _ := list(t, to)
	root, err := os.OpenRoot(from)
	require.NoError(t, err)
	defer root.Close()
	var stream bytes.Buffer
	opt.NameBytes = moveNames
	sent, err := backup.Send(context.Background(), root, bytes.NewReader(listing), &stream, opt)
	require.NoError(t, err)
	archive := bytes.Clone(stream.Bytes())
	require.NoError(t, receive(to, &stream, math.MaxInt64))
	return sent, archive
}

func receive(to string, r io.Reader, most int64) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	return backup.Receive(context.Background(), r, most, root, backup.ExtractOptions{})
}

// TestSendRandomTrees: whatever another tree holds, what Send sends makes it equal, at once; then nothing differs
// and the digests are equal. A stream that is cut anywhere leaves a tree from which the next one goes on.
func TestSendRandomTrees(t *testing.T) {
	fewer(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		defer os.RemoveAll(dir)
		from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
		require.NoError(rt, os.Mkdir(from, 0o700))
		require.NoError(rt, os.Mkdir(to, 0o700))
		plant(rt, from)
		plant(rt, to)
		if rapid.Bool().Draw(rt, "cut") {
			cut := t.TempDir()
			require.NoError(rt, os.Chmod(cut, 0o700))
			_, archive := move(rt, from, cut, backup.SendOptions{SendOptions: v1.SendOptions{Since: far}})
			os.RemoveAll(cut)
			_ = receive(to, bytes.NewReader(archive[:rapid.IntRange(0, len(archive)-1).Draw(rt, "at")]), math.MaxInt64)
		}
		move(rt, from, to, backup.SendOptions{SendOptions: v1.SendOptions{Since: far}})
		sameTree(rt, describe(t, from), describe(t, to))
		sent, _ := move(rt, from, to, backup.SendOptions{SendOptions: v1.SendOptions{Since: far}})
		require.Zero(rt, sent.Entries)
		_, here := list(rt, from)
		_, there := list(rt, to)
		require.Equal(rt, here, there)
		require.Equal(rt, here, sent.Tree)
	})
}

// TestSendInRequests: after SendOptions.Most a request ends, and the next one goes on with what is missing, also within a file.
// A file that was sent is not sent again in its round, although it has changed since the round before, or changes again.
func TestSendInRequests(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, name := range []string{"a", "b", "d"} {
		require.NoError(t, os.WriteFile(filepath.Join(from, name), []byte(name), 0o600))
	}
	noise(t, filepath.Join(from, "c"), 2*part+1)
	round := time.Now()
	opt := backup.SendOptions{SendOptions: v1.SendOptions{Since: time.Unix(0, 0), Round: round, Most: 1}}
	requests := 1
	for ; ; requests++ {
		sent, _ := move(t, from, to, opt)
		if !sent.Partial {
			break
		}
		require.Less(t, requests, 20)
		require.NoError(t, os.WriteFile(filepath.Join(from, "a"), []byte("changed again"), 0o600))
	}
	require.Equal(t, 5, requests, "a; b; two parts of c; the second and the third one; d")
	text, err := os.ReadFile(filepath.Join(to, "a"))
	require.NoError(t, err)
	require.Equal(t, "a", string(text), "it was sent once in this round")
	opt.Since, opt.Round, opt.Most = round, round.Add(time.Hour), 0
	move(t, from, to, opt)
	sameTree(t, describe(t, from), describe(t, to))
}

// TestSendUntil: what has changed since a time is left to the next call, with its hard links.
func TestSendUntil(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, name := range []string{"a", "hot"} {
		require.NoError(t, os.WriteFile(filepath.Join(from, name), []byte("a file"), 0o600))
	}
	require.NoError(t, os.Link(filepath.Join(from, "hot"), filepath.Join(from, "link")))
	require.NoError(t, os.Symlink("a", filepath.Join(from, "soft")))
	opt := backup.SendOptions{SendOptions: v1.SendOptions{Since: time.Unix(0, 0), Until: ctime(t, filepath.Join(from, "soft"))}}
	require.Eventually(t, func() bool { // the clock of the kernel has a grain
		soft := filepath.Join(from, "soft")
		require.NoError(t, errors.Join(os.Remove(soft), os.Symlink("a", soft)))
		return ctime(t, soft).After(opt.Until)
	}, time.Minute, time.Millisecond)
	opt.Until = ctime(t, filepath.Join(from, "soft"))
	require.NoError(t, os.WriteFile(filepath.Join(from, "hot"), []byte("hotter"), 0o600))
	sent, _ := move(t, from, to, opt)
	require.False(t, sent.Partial)
	require.FileExists(t, filepath.Join(to, "a"))
	for _, name := range []string{"hot", "link", "soft"} {
		require.NoFileExists(t, filepath.Join(to, name))
	}
	require.Positive(t, sent.Left)
	opt.Until = time.Time{}
	sent, _ = move(t, from, to, opt)
	require.Zero(t, sent.Left)
	sameTree(t, describe(t, from), describe(t, to))
}

// ctime returns when the kernel has recorded the last change of an entry.
func ctime(t *testing.T, name string) time.Time {
	info, err := os.Lstat(name)
	require.NoError(t, err)
	return time.Unix(fsys.Stat(info).Ctim.Unix())
}

// TestSendBound: entries that do not differ count too, so that nobody keeps a walk going by moving them ahead of it.
func TestSendBound(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, os.WriteFile(filepath.Join(from, name), nil, 0o600))
	}
	opt := backup.SendOptions{SendOptions: v1.SendOptions{Since: far}, Bounds: backup.Bounds{Apparent: 4 * 4096}, NameBytes: moveNames}
	move(t, from, to, opt)
	move(t, from, to, opt)
	opt.Bounds.Apparent--
	listing, _ := list(t, to)
	root, err := os.OpenRoot(from)
	require.NoError(t, err)
	defer root.Close()
	_, err = backup.Send(t.Context(), root, bytes.NewReader(listing), io.Discard, opt)
	require.ErrorContains(t, err, "The volume has too many files")
}

// part is the size of a part of a file.
const part = 4 << 20

// noise writes a file that cannot be compressed, and has a hole at the start of each part.
func noise(t *testing.T, name string, size int) {
	text := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(text)
	for off := 0; off < size; off += part {
		clear(text[off:min(off+4096, size)])
	}
	require.NoError(t, os.WriteFile(name, text, 0o640))
}

// connection is a writer that is cut after some bytes.
type connection struct {
	bytes.Buffer
	left int
}

var errCut = errors.New("connection reset by peer")

func (c *connection) Write(p []byte) (int, error) {
	n, _ := c.Buffer.Write(p[:min(len(p), c.left)])
	if c.left -= n; n < len(p) {
		return n, errCut
	}
	return n, nil
}

// TestSendLargeFile: a file that is larger than what a connection carries arrives, each request goes on where the one before was cut,
// and nothing is sent twice but the part in which it was cut, also if the file is changed and its rest is damaged meanwhile.
func TestSendLargeFile(t *testing.T) {
	const size, carries = 6*part + 12345, 2*part + part/2
	for name, meanwhile := range map[string]func(from, to string, request int){
		"cut":    func(string, string, int) {},
		"killed": func(_, to string, _ int) { damage(t, to) },
		"hot": func(from, _ string, request int) {
			f, err := os.OpenFile(from, os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte("changed"), int64(request)*part)
			require.NoError(t, errors.Join(err, f.Close()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := t.TempDir(), t.TempDir()
			noise(t, filepath.Join(from, "big"), size)
			require.NoError(t, os.Link(filepath.Join(from, "big"), filepath.Join(from, "link")))
			require.NoError(t, os.WriteFile(filepath.Join(to, "big"), []byte("an older one"), 0o600))
			root, err := os.OpenRoot(from)
			require.NoError(t, err)
			defer root.Close()
			began := time.Now()
			opt := backup.SendOptions{SendOptions: v1.SendOptions{Since: far, Round: began}, NameBytes: moveNames}
			total, arrived, requests := 0, int64(-1), 0
			for done := false; !done; requests++ {
				require.Less(t, requests, 12)
				listing, _ := list(t, to)
				c := &connection{left: carries}
				sent, err := backup.Send(context.Background(), root, bytes.NewReader(listing), c, opt)
				if done = err == nil; !done {
					require.ErrorIs(t, err, errCut)
				}
				require.Greater(t, sent.Arrived, arrived, "each request makes progress")
				arrived = sent.Arrived
				total += c.Len()
				err = receive(to, &c.Buffer, math.MaxInt64)
				require.Equal(t, done, err == nil, err)
				if !done {
					meanwhile(filepath.Join(from, "big"), filepath.Join(to, "big"), requests)
				}
			}
			require.Greater(t, requests, 2)
			require.LessOrEqual(t, total, size+requests*part)
			opt.Since, opt.Round = began, began.Add(time.Hour) // the next round
			move(t, from, to, opt)
			sameTree(t, describe(t, from), describe(t, to))
			opt.Since = far
			sent, _ := move(t, from, to, opt)
			require.Zero(t, sent.Entries)
		})
	}
}

// damage changes the end of a file, as a receiver leaves it that is killed while it writes the next part.
func damage(t *testing.T, name string) {
	info, err := os.Stat(name)
	require.NoError(t, err)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("damaged"), info.Size()/part*part+17)
	require.NoError(t, errors.Join(err, f.Close()))
}
