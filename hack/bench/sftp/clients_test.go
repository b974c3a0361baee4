package sftp_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/bench/table"
)

// The tree that each client copies, and how often.
const (
	treeFolders = 200
	treeFiles   = 10_000
	treeRounds  = 3 // each server is first in one of them
)

// copier is a client that copies trees. Its commands have the local folder and the remote
// one.
type copier struct {
	name     string
	put, get func(y yardstick, key, local, remote string) []string
}

func copiers() []copier {
	sftp := func(verb string) func(y yardstick, key, local, remote string) []string {
		return func(y yardstick, key, local, remote string) []string {
			from, to := local, remote
			if verb == "get" {
				from, to = remote, local
			}
			return []string{"sh", "-c", fmt.Sprintf("echo '%s -r %s %s' | sftp %s -b - -P %d %s@127.0.0.1:%s", verb, from, to, options(key), y.port, y.user, y.dir)}
		}
	}
	scp := func(y yardstick, key string) []string {
		return append([]string{"scp", "-q", "-r", "-P", fmt.Sprint(y.port)}, strings.Fields(options(key))...)
	}
	rclone := func(y yardstick, key, from, to string) []string {
		return []string{"rclone", "--config", "/dev/null", "sync", "--sftp-host", "127.0.0.1", "--sftp-port", fmt.Sprint(y.port), "--sftp-user", y.user, "--sftp-key-file", key,
			"--checkers", "4", "--transfers", "4", from, to} // within the sessions of a token, see hack/docs/sftp.md
	}
	lftp := func(y yardstick, key, commands string) []string {
		return []string{"lftp", "--norc", "-c", fmt.Sprintf(`set cmd:fail-exit yes; set sftp:connect-program "ssh -a -x %s"; open -u %s, sftp://127.0.0.1:%d; %s`, options(key), y.user, y.port, commands)}
	}
	return []copier{
		{"sftp", sftp("put"), sftp("get")},
		{"scp",
			func(y yardstick, key, local, remote string) []string {
				return append(scp(y, key), local, y.remote(remote))
			},
			func(y yardstick, key, local, remote string) []string {
				return append(scp(y, key), y.remote(remote), local)
			}},
		{"rclone",
			func(y yardstick, key, local, remote string) []string {
				return rclone(y, key, local, ":sftp:"+filepath.Join(y.dir, remote))
			},
			func(y yardstick, key, local, remote string) []string {
				return rclone(y, key, ":sftp:"+filepath.Join(y.dir, remote), local)
			}},
		{"lftp",
			func(y yardstick, key, local, remote string) []string {
				return lftp(y, key, "mirror -R "+local+" "+filepath.Join(y.dir, remote))
			},
			func(y yardstick, key, local, remote string) []string {
				return lftp(y, key, "mirror "+filepath.Join(y.dir, remote)+" "+local)
			}},
	}
}

// remote returns a folder of the server as scp names it.
func (y yardstick) remote(name string) string {
	return y.user + "@127.0.0.1:" + filepath.Join(y.dir, name)
}

// options are those of OpenSSH's clients, without spaces in them.
func options(key string) string {
	return "-F none -i " + key + " -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
}

// BenchmarkSFTPTree compares berth with OpenSSH's server, and with the libraries alone, when
// usual clients copy a tree of 10,000 new files there and back, the login included. It
// removes nothing before its end:
// ext4 creates files slowly beside inodes that were just freed.
func BenchmarkSFTPTree(b *testing.B) {
	work := b.TempDir()
	dir, err := os.MkdirTemp("", "sftp")
	require.NoError(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(b, os.Chmod(dir, 0o755))
	key, line := writeKey(b, work)
	t := trees{local: filepath.Join(work, "tree"), key: key}
	servers := []yardstick{startBerth(b, line), startOpenSSH(b, dir, line), startLibrary(b, dir)}
	plantTree(b, t.local)
	for _, c := range copiers() {
		put, get := map[string][]float64{}, map[string][]float64{} // by server
		for i := range treeRounds * len(servers) {
			y := servers[(i+i/len(servers))%len(servers)]
			uploaded, downloaded := t.copy(b, c, y, fmt.Sprint(c.name, i))
			put[y.name], get[y.name] = append(put[y.name], uploaded), append(get[y.name], downloaded)
		}
		for _, direction := range []string{"upload", "download"} {
			seconds := put
			if direction == "download" {
				seconds = get
			}
			table.Add(b, table.Row{Measure: fmt.Sprintf("tree of 10,000 files by %s, %s", c.name, direction), Unit: "s", Berth: seconds["berth"], Floor: seconds["openssh"],
				Goal: table.AtMost(1 / 0.8)})
			b.Logf("the libraries without berth: %.2f s", table.Median(seconds["library"]))
		}
	}
}

// trees copies a local tree.
type trees struct {
	local string
	key   string
}

// copy copies the tree to a new folder of a server and back, and returns the seconds. Each copy
// has a token of its own: berth slows one down that has made too many changes.
func (t trees) copy(b *testing.B, c copier, y yardstick, folder string) (put, get float64) {
	b.Helper()
	if y.authorize != nil {
		var line string
		t.key, line = writeKey(b, b.TempDir())
		y.authorize(line)
	}
	back := filepath.Join(filepath.Dir(t.local), y.name+folder)
	put = runCommand(b, c.put(y, t.key, t.local, folder)).Seconds()
	get = runCommand(b, c.get(y, t.key, back, folder)).Seconds()
	out, err := exec.Command("diff", "-r", t.local, back).CombinedOutput()
	require.NoError(b, err, "%s", out)
	return put, get
}

// plantTree makes files of up to 8 KiB.
func plantTree(b *testing.B, dir string) {
	b.Helper()
	for i := range treeFiles {
		folder := filepath.Join(dir, fmt.Sprint(i%treeFolders))
		require.NoError(b, os.MkdirAll(folder, 0o755))
		require.NoError(b, os.WriteFile(filepath.Join(folder, fmt.Sprint("file ", i)), bytes.Repeat([]byte{byte(i)}, i*37%8192), 0o644))
	}
}

// runCommand runs a client, and returns its duration.
func runCommand(b *testing.B, command []string) time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	began := time.Now()
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	require.NoError(b, err, "%v\n%s", command, out)
	return time.Since(began)
}
