package e2e_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"berth/hack/test/berthtest"
)

// secret is the content of files outside the volume. It must not appear inside.
const secret = "the-secret-of-another-tenant"

// plantScript creates links and special files in a tenant's container that lead
// out of its volume. OTHER is the volume of another tenant beside it on the host,
// and AWAY a directory of the host. The script records what the kernel refuses.
const plantScript = `
echo mine > file; mkdir -p dir/sub; echo mine > dir/file
ln -s /etc/passwd abs-file; ln -s /etc abs-folder; ln -s AWAY/secret host-file; ln -s AWAY host-folder
ln -s ../OTHER/secret rel-file; ln -s ../OTHER rel-folder; ln -s ../../../../../../etc/passwd passwd
ln -s .. up; ln -s ../.. dir/up; ln -s dir/./../../OTHER dots; ln -s / root; ln -s /proc/self/root proc
ln -s chain2 chain; ln -s dir/chain3 chain2; ln -s ../rel-folder dir/chain3
ln -s loop2 loop; ln -s loop loop2; ln -s self self
ln -s ../OTHER/new new-out; ln -s nowhere dangling
mkfifo fifo; mkfifo dir/fifo
ln file hard; ln /etc/passwd hard-out || echo hard link >> refused
mknod device c 1 3 || echo device >> refused
ln -s "$PWD/socket" /dev/log; syslogd; while [ ! -S socket ]; do usleep 20000; done
tar -cf made.tar file dir/file
`

// The kinds of planted names, which decide how an operation on them is answered.
const (
	out      = "a link that leads out, or nowhere at all"
	dangling = "a link to what could be there"
	special  = "a FIFO, a socket or a device"
	hardLink = "a hard link in the volume"
)

var planted = map[string][]string{
	out: {"abs-file", "abs-folder", "host-file", "host-folder", "rel-file", "rel-folder", "passwd", "up", "dir/up", "dots", "root",
		"proc", "chain", "chain2", "dir/chain3", "loop", "loop2", "self", "new-out"},
	dangling: {"dangling"},
	special:  {"fifo", "dir/fifo", "socket", "device"},
	hardLink: {"hard"},
}

// through holds paths that are outside the volume if a link on the way is followed.
var through = []string{
	"abs-folder/passwd", "abs-folder/new", "host-folder/secret", "host-folder/new", "host-folder/new/deep", "rel-folder/secret",
	"up/OTHER/secret", "up/new", "dir/up/volumes", "dots/secret", "root/etc/passwd", "proc/etc/passwd", "chain/secret",
	"chain2/secret", "dir/chain3/new", "loop/x", "self/x", "./rel-folder/./secret", "dir//up/new",
}

// fileCall is a path field of an endpoint, with the expected status for each kind.
// P in request and body stands for the path.
type fileCall struct {
	name, request, body string
	want                map[string]int // by kind; through is as out
}

// fileCalls do not remove or replace planted names.
var fileCalls = []fileCall{
	{"list", "GET files?path=P", "", map[string]int{out: 400, dangling: 404, special: 404, hardLink: 404}},
	{"search", "GET files/search?query=e&path=P", "", map[string]int{out: 400, dangling: 404, special: 404, hardLink: 404}},
	{"read", "GET files/content?path=P", "", map[string]int{out: 400, dangling: 404, special: 400, hardLink: 200}},
	{"mkdir", "POST folders", `{"path":"P"}`, map[string]int{out: 400, dangling: 409, special: 409, hardLink: 409}},
	{"copy from", "POST copy", `{"source":"P","destination":"taken"}`, map[string]int{out: 400, dangling: 404, special: 400, hardLink: 200}},
	{"compress", "POST compress", `{"output_name":"taken","format":"tar","paths":["P"]}`, map[string]int{out: 400, dangling: 200, special: 200, hardLink: 200}},
	{"compress in", "POST compress", `{"output_name":"taken","format":"tar","path":"P"}`, map[string]int{out: 400, dangling: 404, special: 404, hardLink: 404}},
	{"decompress from", "POST decompress", `{"archive_path":"P","destination":"taken"}`, map[string]int{out: 400, dangling: 404, special: 400, hardLink: 400}},
	{"decompress into", "POST decompress", `{"archive_path":"made.tar","destination":"P"}`, map[string]int{out: 400, dangling: 404, special: 409, hardLink: 409}},
	{"chmod", "POST chmod", `{"path":"P","mode":"0666"}`, map[string]int{out: 400, dangling: 400, special: 200, hardLink: 200}},
}

// ownCalls act on a link itself, or replace a special file.
var ownCalls = []fileCall{
	{"copy to", "POST copy", `{"source":"file","destination":"P"}`, map[string]int{out: 409, dangling: 409, special: 409, hardLink: 409}},
	{"rename to", "POST rename", `{"source":"file","destination":"P"}`, map[string]int{out: 409, dangling: 409, special: 409, hardLink: 409}},
	{"rename from", "POST rename", `{"source":"P","destination":"taken"}`, map[string]int{out: 200, dangling: 200, special: 200, hardLink: 200}},
	{"rename back", "POST rename", `{"source":"taken","destination":"P"}`, map[string]int{out: 200, dangling: 200, special: 200, hardLink: 200}},
	{"write", "POST files", `{"path":"P","content":"x"}`, map[string]int{out: 400, dangling: 200, special: 200, hardLink: 200}},
	{"upload", "PUT files/content?path=P", "x", map[string]int{out: 400, dangling: 200, special: 200, hardLink: 200}},
}

// deletion removes a link itself.
var deletion = fileCall{"delete", "DELETE files?path=P", "", map[string]int{out: 200, dangling: 200, special: 200, hardLink: 200}}

// throughCalls name an entry in a folder: no link on the way to it is followed out
// of the volume. The output of compress gets an extension.
var throughCalls = slices.Concat(fileCalls, ownCalls, []fileCall{
	deletion,
	{"compress to", "POST compress", `{"output_name":"P","format":"tar","paths":["file"]}`, nil},
})

// tenant is a volume with a container that has planted its links, and directories
// of the host around it.
type tenant struct {
	*berthtest.Berth
	container   berthtest.Container
	volume, dir string
	other, away string // directories outside, whose files hold the secret
	longest     time.Duration
}

func newTenant(t *testing.T, script string) *tenant {
	t.Helper()
	b := berthtest.Start(t, berthtest.Options{})
	w := &tenant{Berth: b, volume: b.Volume(t), away: t.TempDir()}
	other := b.Volume(t)
	w.dir, w.other = filepath.Join(b.Data, "volumes", w.volume), filepath.Join(b.Data, "volumes", other)
	for _, dir := range []string{w.other, w.away} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte(secret), 0o644))
	}
	script = strings.NewReplacer("OTHER", other, "AWAY", w.away).Replace(script)
	w.container = b.Started(t, "tenant", berthtest.Spec{"volume_id": w.volume, "startup_command": "{ " + script + "\n} 2>&1; echo done > planted; sleep 100000"})
	return w
}

// around returns the state of everything outside the volume, which no call may
// read or change.
func (w *tenant) around(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, top := range []string{w.other, w.away, filepath.Dir(w.dir)} {
		list, err := os.ReadDir(top)
		require.NoError(t, err)
		for _, e := range list {
			if top == filepath.Dir(w.dir) && e.Name() == ".tmp" {
				continue // berth's own, for entries that are not complete
			}
			p := filepath.Join(top, e.Name())
			info, err := e.Info()
			require.NoError(t, err)
			all[p] = info.Mode().String()
			if e.Type().IsRegular() {
				data, err := os.ReadFile(p)
				require.NoError(t, err)
				all[p] += " " + string(data)
			}
		}
	}
	passwd, err := os.ReadFile("/etc/passwd")
	require.NoError(t, err)
	all["/etc/passwd"] = fmt.Sprintf("%x", sha256.Sum256(passwd))
	for _, name := range []string{"new", "new.tar", "taken", "file"} { // not all of them: another test may install a package
		_, err := os.Lstat("/etc/" + name)
		all["/etc/"+name] = fmt.Sprint(err)
	}
	return all
}

// call sends a call for a path. It must be answered, and the answer must not
// contain anything from outside the volume.
func (w *tenant) call(ctx context.Context, c fileCall, p string) (berthtest.Answer, error) {
	method, endpoint, _ := strings.Cut(c.request, " ")
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var body any
	var header []string
	if c.body != "" {
		body = strings.ReplaceAll(c.body, "P", p)
	}
	if strings.HasPrefix(endpoint, "files/content") {
		header = []string{"Content-Type", "application/octet-stream"}
	}
	answer, err := w.Try(ctx, method, "/volumes/"+w.volume+"/"+strings.ReplaceAll(endpoint, "P", url.QueryEscape(p)), body, header...)
	if err == nil && (strings.Contains(string(answer.Body), secret) || strings.Contains(string(answer.Body), "root:x:0")) {
		err = fmt.Errorf("%s of %s reads a file outside the volume", c.name, p)
	}
	return answer, err
}

// clean removes the results of a call.
func (w *tenant) clean(t *testing.T) {
	t.Helper()
	for _, name := range []string{"taken", "taken.tar", "nowhere"} {
		require.NoError(t, os.RemoveAll(filepath.Join(w.dir, name)))
	}
}

// noSecret requires that no file of the volume contains the secret. Archives are
// included, because they are uncompressed.
func (w *tenant) noSecret(t *testing.T) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(w.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(p)
		require.NotContains(t, string(data), secret, p)
		require.NotContains(t, string(data), "root:x:0", p)
		return err
	}))
}

// TestLinksOfATenant plants every kind of link and special file from inside a
// running container, and calls every endpoint for files on each of them.
func TestLinksOfATenant(t *testing.T) {
	t.Parallel()
	w := newTenant(t, plantScript)
	berthtest.Until(t, wait, "all is planted", func() bool { return w.container.Count("planted") == 1 })
	refused, err := os.ReadFile(filepath.Join(w.dir, "refused"))
	require.NoError(t, err)
	require.Equal(t, "hard link\ndevice\n", string(refused), "what the container may not do")
	require.NoError(t, unix.Mknod(filepath.Join(w.dir, "device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	before := w.around(t)

	for _, name := range slices.Concat(planted[out], planted[dangling], planted[special], planted[hardLink]) {
		_, err := os.Lstat(filepath.Join(w.dir, name))
		require.NoError(t, err, "it was planted")
	}
	w.onPlanted(t, fileCalls...)
	for _, p := range through {
		p = strings.ReplaceAll(p, "OTHER", filepath.Base(w.other))
		for _, c := range throughCalls {
			if c.name != "rename back" {
				w.expect(t, c, p, "a path through a link", 400)
			}
		}
	}
	w.whole(t)
	w.onPlanted(t, ownCalls...)
	w.noSecret(t)
	w.onPlanted(t, deletion)
	w.noSecret(t)
	require.Empty(t, cmp.Diff(before, w.around(t)))
	content, err := os.ReadFile(filepath.Join(w.dir, "file"))
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(content), "the other name of a hard link keeps the content")
	t.Logf("the longest call took %s", w.longest.Round(time.Millisecond))
}

// onPlanted makes calls on everything that was planted.
func (w *tenant) onPlanted(t *testing.T, calls ...fileCall) {
	t.Helper()
	for kind, names := range planted {
		for _, name := range names {
			for _, c := range calls {
				w.expect(t, c, name, kind, c.want[kind])
			}
		}
	}
}

// expect makes one call and checks its status, and the documented text if a link
// leads out of the volume.
func (w *tenant) expect(t *testing.T, c fileCall, p, kind string, status int) {
	t.Helper()
	began := time.Now()
	answer, err := w.call(t.Context(), c, p)
	w.longest = max(w.longest, time.Since(began))
	require.NoError(t, err)
	require.Equal(t, status, answer.Status, "%s of %s, %s: %s", c.name, p, kind, answer.Body)
	if status == 400 && kind != special && kind != hardLink {
		require.JSONEq(t, `{"error":"Invalid path: path traversal detected"}`, string(answer.Body), "%s of %s", c.name, p)
	}
	if c.name != "rename from" {
		w.clean(t)
	}
}

// whole acts on the whole tree with everything that was planted in it.
func (w *tenant) whole(t *testing.T) {
	t.Helper()
	at := "/volumes/" + w.volume
	for _, request := range []string{at + "/files", at + "/files?path=dir", at + "/files/search?query=*"} {
		require.NotContains(t, string(w.Must(t, "GET", request, nil).Body), secret)
	}
	for _, format := range []string{"zip", "tar", "tar.gz", "tar.bz2"} {
		var made struct{ Skipped int }
		w.Post(t, at+"/compress", map[string]any{"output_name": "taken", "format": format}).Decode(t, &made)
		require.Equal(t, 13, made.Skipped, "links whose own text leads out")
		w.Post(t, at+"/decompress", map[string]any{"archive_path": "taken." + format, "destination": "taken"})
		require.NoError(t, os.Remove(filepath.Join(w.dir, "taken."+format)))
		_, err := os.Lstat(filepath.Join(w.dir, "taken", "fifo"))
		require.ErrorIs(t, err, fs.ErrNotExist, "special files are left out")
		w.noSecret(t)
		w.clean(t)
	}
	w.Post(t, at+"/copy", map[string]any{"source": "dir", "destination": "taken"})
	w.noSecret(t)
	w.clean(t)
}
