package e2e_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/hack/test/berthtest"
)

// sftpNode is a daemon with SFTP, a volume, and a token with a key.
type sftpNode struct {
	*berthtest.Berth
	t      *testing.T
	port   int
	volume string // id
	dir    string // of the volume, on the host
	token  string
	key    string // file of the private key
	known  string // file of known hosts
}

// newSFTPNode starts a daemon, whose configuration has these lines too.
func newSFTPNode(t *testing.T, more ...string) *sftpNode {
	t.Helper()
	n := &sftpNode{t: t, port: berthtest.FreePort(t)}
	n.Berth = berthtest.Start(t, berthtest.Options{Config: fmt.Sprintf("sftp: {enabled: true, host: 127.0.0.1, port: %d}\n%s", n.port, strings.Join(more, "\n"))})
	work := t.TempDir()
	n.key, n.known = filepath.Join(work, "key"), filepath.Join(work, "known_hosts")
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(n.key, pem.EncodeToMemory(block), 0o600))
	own, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	n.trust()
	var volume struct {
		ID   string `json:"volume_id"`
		Path string `json:"path"`
	}
	n.Post(t, "/volumes", map[string]any{}).Decode(t, &volume)
	n.volume, n.dir = volume.ID, volume.Path
	n.token = mint(t, n.Berth, fmt.Sprintf(`{"name":"customer","scopes":["files"],"ssh_keys":[%q]}`, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(own))))).Token
	return n
}

// trust writes the host key that the daemon has made to the file of known hosts.
func (n *sftpNode) trust() {
	n.t.Helper()
	file := filepath.Join(n.Data, "sftp", "ed25519")
	info, err := os.Stat(file)
	require.NoError(n.t, err)
	require.Equal(n.t, fs.FileMode(0o600), info.Mode())
	text, err := os.ReadFile(file)
	require.NoError(n.t, err)
	key, err := ssh.ParsePrivateKey(text)
	require.NoError(n.t, err)
	line := fmt.Sprintf("[127.0.0.1]:%d %s", n.port, ssh.MarshalAuthorizedKey(key.PublicKey()))
	require.NoError(n.t, os.WriteFile(n.known, []byte(line), 0o600))
}

// options are the options of OpenSSH's clients.
func (n *sftpNode) options() []string {
	return []string{"-F", "none", "-i", n.key, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes",
		"-o", "UserKnownHostsFile=" + n.known}
}

// command runs a client, and requires success.
func (n *sftpNode) command(input string, name string, args ...string) string {
	n.t.Helper()
	out, err := n.try(input, name, args...)
	require.NoError(n.t, err, "%s %s\n%s", name, strings.Join(args, " "), out)
	return out
}

func (n *sftpNode) try(input string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(n.t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(n.key))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// sftp runs commands of OpenSSH's sftp.
func (n *sftpNode) sftp(commands string) string {
	n.t.Helper()
	return n.command(commands, "sftp", append(n.options(), "-b", "-", "-P", fmt.Sprint(n.port), n.volume+"@127.0.0.1")...)
}

// sftpClient copies a tree to the volume and back.
type sftpClient struct {
	name      string
	preserves bool // modes and times
	put, get  func(n *sftpNode, local, remote string)
}

var sftpClients = []sftpClient{
	{"sftp", true,
		func(n *sftpNode, local, remote string) { n.sftp(fmt.Sprintf("put -rp %s %s\n", local, remote)) },
		func(n *sftpNode, local, remote string) { n.sftp(fmt.Sprintf("get -rp %s %s\n", remote, local)) }},
	{"scp", true,
		func(n *sftpNode, local, remote string) { n.scp(local, n.volume+"@127.0.0.1:"+remote) },
		func(n *sftpNode, local, remote string) { n.scp(n.volume+"@127.0.0.1:"+remote, local) }},
	{"rclone", false,
		func(n *sftpNode, local, remote string) { n.rclone(local, ":sftp:"+remote) },
		func(n *sftpNode, local, remote string) { n.rclone(":sftp:"+remote, local) }},
	{"lftp", true,
		func(n *sftpNode, local, remote string) { n.lftp(fmt.Sprintf("mirror -R %s %s", local, remote)) },
		func(n *sftpNode, local, remote string) { n.lftp(fmt.Sprintf("mirror %s %s", remote, local)) }},
	{"paramiko", true,
		func(n *sftpNode, local, remote string) { n.paramiko("put", local, remote) },
		func(n *sftpNode, local, remote string) { n.paramiko("get", remote, local) }},
}

func (n *sftpNode) scp(from, to string) {
	n.t.Helper()
	n.command("", "scp", append(n.options(), "-r", "-p", "-q", "-P", fmt.Sprint(n.port), from, to)...)
}

func (n *sftpNode) rclone(from, to string) {
	n.t.Helper()
	n.command("", "rclone", "--config", filepath.Join(filepath.Dir(n.key), "rclone.conf"), "sync", "--create-empty-src-dirs",
		"--sftp-host", "127.0.0.1", "--sftp-port", fmt.Sprint(n.port), "--sftp-user", n.volume, "--sftp-key-file", n.key,
		"--sftp-known-hosts-file", n.known, "--checkers", "4", "--transfers", "4", from, to)
}

func (n *sftpNode) lftp(commands string) {
	n.t.Helper()
	n.command("", "lftp", "--norc", "-c", fmt.Sprintf("set cmd:fail-exit yes; set sftp:connect-program \"ssh -a -x %s\"; open -u %s, sftp://127.0.0.1:%d; %s",
		strings.Join(n.options(), " "), n.volume, n.port, commands))
}

// paramiko runs Debian's paramiko, which is for Debian's Python only.
func (n *sftpNode) paramiko(verb, from, to string) {
	n.t.Helper()
	n.python("paramiko_tree.py", verb, from, to)
}

// TestSFTPLinksOfClients: a link points from its name to its target, whichever order of both a client has.
func TestSFTPLinksOfClients(t *testing.T) {
	t.Parallel()
	n := newSFTPNode(t)
	require.NoError(t, os.WriteFile(filepath.Join(n.dir, "target"), []byte("text"), 0o644))
	for name, link := range map[string]func(name string){
		"sftp":     func(name string) { n.sftp("symlink target " + name + "\n") },
		"paramiko": func(name string) { n.python("paramiko_link.py", "target", name) },
		"asyncssh": func(name string) { n.python("asyncssh_link.py", "target", name) },
	} {
		link(name)
		target, err := os.Readlink(filepath.Join(n.dir, name))
		require.NoError(t, err, name)
		require.Equal(t, "target", target, name)
	}
}

// python runs a program of testdata with Debian's Python.
func (n *sftpNode) python(program string, args ...string) {
	n.t.Helper()
	n.command("", "/usr/bin/python3", append([]string{"testdata/" + program, fmt.Sprint(n.port), n.volume, n.key, n.known}, args...)...)
}

// plantTree makes a tree of files with usual and unusual names.
func plantTree(t *testing.T, dir string, count int) {
	t.Helper()
	names := []string{"plain", "with space", "ünïcödé-日本語", "a..b", "quote'", "-rf", "trailing.", ".hidden", "UPPER", "#hash", "semi;colon"}
	then := time.Date(2021, 3, 4, 5, 6, 7, 0, time.UTC)
	for i := range count {
		folder := filepath.Join(dir, names[i/50%len(names)], fmt.Sprint("d", i/500))
		require.NoError(t, os.MkdirAll(folder, 0o755))
		file := filepath.Join(folder, fmt.Sprint(i, " ", names[i%len(names)]))
		require.NoError(t, os.WriteFile(file, []byte(strings.Repeat(fmt.Sprintln(i), i%700)), 0o600))
		require.NoError(t, os.Chmod(file, []fs.FileMode{0o644, 0o600, 0o755}[i%3]))
		require.NoError(t, os.Chtimes(file, then, then.Add(time.Duration(i)*time.Second)))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "empty/folder"), 0o755))
	plantLarge(t, filepath.Join(dir, "large"), int64(rounds(16<<20, 1<<30)))
}

// plantLarge makes a file whose parts are all different.
func plantLarge(t *testing.T, file string, size int64) {
	t.Helper()
	f, err := os.Create(file)
	require.NoError(t, err)
	defer f.Close()
	_, err = io.CopyN(f, rand.Reader, size)
	require.NoError(t, err)
}

// describeTree returns the content of each file below a directory, and its mode and time.
func describeTree(t *testing.T, dir string, attributes bool) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		info, err := d.Info()
		if err != nil || d.IsDir() {
			all[name] = "folder"
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		hash := sha256.New()
		_, err = io.Copy(hash, f)
		all[name] = fmt.Sprintf("%x", hash.Sum(nil))
		if attributes && info.Name() != "large" {
			all[name] += fmt.Sprint(" ", info.Mode(), info.ModTime().Unix())
		}
		return err
	}))
	return all
}

// TestSFTPClients copies a tree to a volume and back with the clients that customers use.
func TestSFTPClients(t *testing.T) {
	t.Parallel()
	n := newSFTPNode(t)
	tree := filepath.Join(t.TempDir(), "tree")
	plantTree(t, tree, rounds(300, 10_000))
	for _, k := range sftpClients {
		t.Run(k.name, func(t *testing.T) {
			n := *n
			n.t = t
			want := describeTree(t, tree, k.preserves)
			began := time.Now()
			k.put(&n, tree, k.name)
			t.Logf("upload in %s", time.Since(began).Round(time.Millisecond))
			require.Empty(t, cmp.Diff(want, describeTree(t, filepath.Join(n.dir, k.name), k.preserves)), "in the volume")
			back := filepath.Join(t.TempDir(), "back")
			began = time.Now()
			k.get(&n, back, k.name)
			t.Logf("download in %s", time.Since(began).Round(time.Millisecond))
			require.Empty(t, cmp.Diff(want, describeTree(t, back, k.preserves)), "back again")
		})
	}
}
