package sftp_test

import (
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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/hack/berthtest"
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
	d.Post(b, "/auth/tokens", map[string]any{"scopes": []string{"files"}, "ssh_keys": []string{line}})
	return yardstick{"berth", volume.ID, "/", port}
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
	return yardstick{"openssh", "root", files, port}
}

// run runs commands of OpenSSH's sftp, and returns their duration.
func (y yardstick) run(b *testing.B, key, commands string) time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sftp", "-F", "none", "-i", key, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-b", "-", "-P", fmt.Sprint(y.port), y.user+"@127.0.0.1:"+y.dir)
	cmd.Stdin = strings.NewReader(commands)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	require.NoError(b, err, "%s: %s", y.name, out)
	return time.Since(began)
}

// BenchmarkSFTP reports the rates of berth, and their ratio to those of OpenSSH.
func BenchmarkSFTP(b *testing.B) {
	dir, err := os.MkdirTemp("", "sftp")
	require.NoError(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(b, os.Chmod(dir, 0o755))
	work := b.TempDir()
	key, line := writeKey(b, work)
	servers := []yardstick{startBerth(b, line), startOpenSSH(b, dir, line)}
	const size, count = 256 << 20, 2000
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
			took := map[string]time.Duration{}
			for b.Loop() {
				for _, y := range servers {
					took[y.name] += y.run(b, key, k.commands)
				}
			}
			rate := func(name string) float64 { return k.amount * float64(b.N) / took[name].Seconds() }
			b.ReportMetric(rate("berth"), k.unit)
			b.ReportMetric(rate("berth")/rate("openssh"), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}
