package sftp_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/hack/test/berthtest"
)

// serverScript starts OpenSSH's server in a mount namespace that has the user sshd, which
// it requires, and an unlocked account of root.
const serverScript = `
mount -t tmpfs none /run && mkdir /run/sshd
(cat /etc/passwd; echo sshd:x:65533:65534::/run/sshd:/bin/false) > /run/passwd
echo 'root:*:1:0:99999:7:::' > /run/shadow
mount --bind /run/passwd /etc/passwd && mount --bind /run/shadow /etc/shadow
exec "$0/usr/sbin/sshd" -D -e -f "$1"
`

// yardstick is one of the servers that are compared.
type yardstick struct {
	name, user, dir string // dir: where the client begins
	port            int
	authorize       func(line string) // has berth accept a key, with a token of its own
}

// writeKey makes a key, and returns its file and its public line.
func writeKey(b *testing.B, dir string) (file, line string) {
	b.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(b, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(b, err)
	file = filepath.Join(dir, "key")
	require.NoError(b, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	key, err := ssh.NewSignerFromKey(private)
	require.NoError(b, err)
	return file, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
}

// startBerth starts a daemon with a volume.
func startBerth(b *testing.B, line string) yardstick {
	b.Helper()
	port := berthtest.FreePort(b)
	d := berthtest.Start(b, berthtest.Options{Config: fmt.Sprintf("sftp: {enabled: true, host: 127.0.0.1, port: %d}", port)})
	var volume struct {
		ID string `json:"volume_id"`
	}
	d.Post(b, "/volumes", map[string]any{}).Decode(b, &volume)
	authorize := func(line string) {
		d.Post(b, "/auth/tokens", map[string]any{"scopes": []string{"files"}, "ssh_keys": []string{line}})
	}
	authorize(line)
	return yardstick{"berth", volume.ID, "/", port, authorize}
}

// startOpenSSH starts OpenSSH's server, whose files are on the same file system.
func startOpenSSH(b *testing.B, dir, line string) yardstick {
	b.Helper()
	out, err := exec.Command("../../sshd.sh").Output()
	require.NoError(b, err)
	installed := strings.TrimSpace(string(out))
	host, _ := writeKey(b, dir)
	port := berthtest.FreePort(b)
	files := filepath.Join(dir, "files")
	require.NoError(b, os.Mkdir(files, 0o755))
	require.NoError(b, os.WriteFile(filepath.Join(dir, "keys"), []byte(line+"\n"), 0o644))
	config := filepath.Join(dir, "sshd_config")
	require.NoError(b, os.WriteFile(config, fmt.Appendf(nil, "Port %d\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"+
		"PidFile none\nSubsystem sftp internal-sftp\nForceCommand internal-sftp\n", port, host, filepath.Join(dir, "keys")), 0o644))
	libraries, err := filepath.Glob(filepath.Join(installed, "*/*/*linux-gnu"))
	require.NoError(b, err)
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-ec", serverScript, installed, config)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LD_LIBRARY_PATH=" + strings.Join(libraries, ":")}
	var log bytes.Buffer
	cmd.Stderr = &log
	require.NoError(b, cmd.Start())
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	berthtest.Until(b, 20*time.Second, "sshd answers", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return yardstick{name: "openssh", user: "root", dir: files, port: port}
}

// client is OpenSSH's sftp, logged in to one of the servers.
type client struct {
	name   string
	input  io.Writer
	output *bufio.Scanner
	log    *bytes.Buffer // standard error
}

// login starts a client, which ends with the benchmark.
func (y yardstick) login(b *testing.B, key, ciphers string) *client {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	cmd := exec.CommandContext(ctx, "sftp", "-F", "none", "-i", key, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "Ciphers="+ciphers, "-b", "-", "-P", fmt.Sprint(y.port), y.user+"@127.0.0.1:"+y.dir)
	c := &client{name: y.name, log: new(bytes.Buffer)}
	cmd.Stderr = c.log
	input, err := cmd.StdinPipe()
	require.NoError(b, err)
	output, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() { input.Close(); _ = cmd.Wait(); cancel() })
	c.input, c.output = input, bufio.NewScanner(output)
	return c
}

// run runs commands, and returns their duration. The login is not part of it.
func (c *client) run(b *testing.B, commands string) time.Duration {
	b.Helper()
	began := time.Now()
	_, err := io.WriteString(c.input, commands+"!echo finished\n")
	require.NoError(b, err)
	for c.output.Scan() {
		if c.output.Text() == "finished" {
			return time.Since(began)
		}
	}
	require.FailNow(b, "the client ended", "%s: %s", c.name, c.log)
	return 0
}

// rounds is how often the servers take turns in one iteration.
const rounds = 40

// BenchmarkSFTP compares the rates of berth with those of OpenSSH in short turns. ratio-fast is
// that of the turns which one in ten is faster than: on a busy machine it depends least on
// others. ratio is the median of all turns, with the quarters below and above it.
// ratio-library is the median of the libraries without berth. Each server has the cipher that
// OpenSSH's client chooses by default.
func BenchmarkSFTP(b *testing.B) { compare(b, "-aes128-cbc") } // the default, which has no CBC

// BenchmarkSFTPSameCipher compares them with the same cipher.
func BenchmarkSFTPSameCipher(b *testing.B) { compare(b, "aes128-gcm@openssh.com") }

// compare compares the servers. ciphers is the option of the client.
func compare(b *testing.B, ciphers string) {
	b.Helper()
	dir, err := os.MkdirTemp("", "sftp")
	require.NoError(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(b, os.Chmod(dir, 0o755))
	work := b.TempDir()
	key, line := writeKey(b, work)
	clients := []*client{startBerth(b, line).login(b, key, ciphers), startOpenSSH(b, dir, line).login(b, key, ciphers), startLibrary(b, dir).login(b, key, ciphers)}
	const size, count = 32 << 20, 40
	local, tree := filepath.Join(work, "large"), filepath.Join(work, "tree")
	f, err := os.Create(local)
	require.NoError(b, err)
	_, err = io.CopyN(f, rand.Reader, size)
	require.NoError(b, err)
	require.NoError(b, f.Close())
	require.NoError(b, os.Mkdir(tree, 0o755))
	for i := range count {
		require.NoError(b, os.WriteFile(filepath.Join(tree, fmt.Sprint(i)), bytes.Repeat([]byte{1}, 4096), 0o644))
	}
	for _, k := range []struct {
		name, commands string
		amount         float64
		unit           string
	}{
		{"upload", "put " + local + " large\n", size >> 20, "MiB/s"},
		{"download", "get large " + filepath.Join(work, "back") + "\n", size >> 20, "MiB/s"},
		{"upload of small files", "put -r " + tree + " tree\n", count, "files/s"},
		{"download of small files", "get -r tree " + filepath.Join(work, "tree-back") + "\n", count, "files/s"},
	} {
		b.Run(k.name, func(b *testing.B) {
			var ratios, library []float64
			times := map[string][]float64{}
			for b.Loop() {
				for i := range rounds {
					took := map[string]float64{}
					for n := range clients { // each is first in every second round
						c := clients[(n+i)%len(clients)]
						took[c.name] = c.run(b, k.commands).Seconds()
						times[c.name] = append(times[c.name], took[c.name])
					}
					ratios = append(ratios, took["openssh"]/took["berth"])
					library = append(library, took["openssh"]/took["library"])
				}
			}
			fast := func(name string) float64 { slices.Sort(times[name]); return times[name][len(times[name])/10] }
			slices.Sort(ratios)
			slices.Sort(library)
			b.ReportMetric(library[len(library)/2], "ratio-library")
			b.ReportMetric(k.amount/fast("berth"), k.unit)
			b.ReportMetric(fast("openssh")/fast("berth"), "ratio-fast")
			b.ReportMetric(ratios[len(ratios)/4], "ratio-low")
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
			b.ReportMetric(ratios[len(ratios)*3/4], "ratio-high")
			b.ReportMetric(0, "ns/op")
		})
	}
}
