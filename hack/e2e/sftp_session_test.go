package e2e_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/pkg/sftp"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/hack/test/berthtest"
)

// dial opens a session with a token as password.
func (n *sftpNode) dial(user, token string) (*client.Client, error) {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", n.port), wait)
	if err != nil {
		return nil, err
	}
	c, channels, requests, err := ssh.NewClientConn(conn, "", &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.Password(token)},
		HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: wait})
	if err != nil {
		conn.Close()
		return nil, err
	}
	k := ssh.NewClient(c, channels, requests)
	files, err := client.NewClient(k, client.UseConcurrentWrites(true)) // as OpenSSH does it
	if err != nil {
		k.Close()
		return nil, err
	}
	n.t.Cleanup(func() { k.Close() })
	return files, nil
}

// TestSFTPResume cuts an upload and a download of OpenSSH's sftp, and continues them.
func TestSFTPResume(t *testing.T) {
	t.Parallel()
	n := newSFTPNode(t)
	work := t.TempDir()
	local, back := filepath.Join(work, "file"), filepath.Join(work, "back")
	plantLarge(t, local, 8<<20)
	content, err := os.ReadFile(local)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(n.dir, "file"), content[:3<<20], 0o644))
	n.sftp(fmt.Sprintf("reput %s file\n", local))
	got, err := os.ReadFile(filepath.Join(n.dir, "file"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
	require.NoError(t, os.WriteFile(back, content[:5<<20], 0o600))
	n.sftp(fmt.Sprintf("reget file %s\n", back))
	got, err = os.ReadFile(back)
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
	require.Contains(t, n.sftp("df\n"), "%")
}

// TestSFTPSessionEndsInTransfer revokes a token, lets one expire, and deletes a volume
// in the middle of an upload: the upload ends within a second.
func TestSFTPSessionEndsInTransfer(t *testing.T) {
	t.Parallel()
	n := newSFTPNode(t)
	for name, end := range map[string]func(m minted, volume string) time.Time{
		"revoked": func(m minted, _ string) time.Time {
			n.Must(t, "DELETE", "/auth/tokens/"+m.ID, nil)
			return time.Now()
		},
		"expired": func(m minted, _ string) time.Time {
			expires, err := time.Parse(time.RFC3339, m.ExpiresAt)
			require.NoError(t, err)
			return expires
		},
		"deleted": func(_ minted, volume string) time.Time {
			n.Must(t, "DELETE", "/volumes/"+volume, nil)
			return time.Now()
		},
	} {
		var volume struct {
			ID string `json:"volume_id"`
		}
		n.Post(t, "/volumes", map[string]any{}).Decode(t, &volume)
		m := mint(t, n.Berth, `{"ttl":"10s","scopes":["files"]}`)
		c, err := n.dial(volume.ID, m.Token)
		require.NoError(t, err)
		var written atomic.Int64
		ended := make(chan time.Time, 1)
		go func() {
			f, err := c.Create("file")
			for piece := make([]byte, 32<<10); err == nil; {
				_, err = f.WriteAt(piece, written.Add(1)%1024*int64(len(piece)))
			}
			ended <- time.Now()
		}()
		berthtest.Until(t, wait, "the upload began", func() bool { return written.Load() > 50 })
		due := end(m, volume.ID)
		select {
		case at := <-ended:
			t.Logf("%s: ended after %s", name, at.Sub(due).Round(time.Millisecond))
			require.Less(t, at.Sub(due), time.Duration(rounds(10, 1))*time.Second, name)
		case <-time.After(wait):
			t.Fatalf("%s: the upload goes on", name)
		}
	}
}

// TestSFTPHalfOpenConnections measures what connections that never log in cost.
func TestSFTPHalfOpenConnections(t *testing.T) {
	t.Parallel()
	n := newSFTPNode(t)
	before := resident(t, n.Pid())
	for i := range 1000 {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", n.port))
		require.NoError(t, err)
		defer conn.Close()
		if i%2 == 0 { // as far as a client comes without a key exchange
			_, err = conn.Write([]byte("SSH-2.0-attacker\r\n"))
			require.NoError(t, err)
		}
	}
	after := resident(t, n.Pid())
	t.Logf("%d KiB more", (after-before)>>10)
	require.Less(t, after-before, int64(16<<20))
	c, err := n.dial(n.volume, n.token)
	require.NoError(t, err, "a client logs in beside them")
	c.Close()
}

// resident returns the memory of a process in bytes.
func resident(t *testing.T, pid int) (bytes int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	require.NoError(t, err)
	var size int64
	_, err = fmt.Sscan(string(text), &size, &bytes)
	require.NoError(t, err)
	return bytes * int64(os.Getpagesize())
}

// TestSFTPSwappedLinks lets a tenant swap folders and links while clients read and write
// through them: nothing outside of the volume is read or changed.
func TestSFTPSwappedLinks(t *testing.T) {
	t.Parallel()
	n := newSFTPNode(t)
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "file"), []byte(secret), 0o666))
	require.NoError(t, os.Chmod(outside, 0o777))
	require.NoError(t, os.MkdirAll(filepath.Join(n.dir, "real"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(n.dir, "real/file"), []byte("mine"), 0o666))
	var reads, refused atomic.Int64
	end := time.Now().Add(time.Duration(rounds(3, 60)) * time.Second)
	goesOn := func() bool { // at least until a read went through the link that stays inside
		return time.Now().Before(end) || reads.Load() == refused.Load() && time.Now().Before(end.Add(wait))
	}
	var all sync.WaitGroup
	all.Go(func() { // the tenant, who may write to the volume's directory
		for i := 0; goesOn(); i++ {
			next := filepath.Join(n.dir, "next")
			_ = os.Remove(next)
			_ = os.Symlink([]string{"real", outside, "../../..", "/"}[i%4], next)
			_ = os.Rename(next, filepath.Join(n.dir, "swap"))
			link := filepath.Join(n.dir, "real/next")
			_ = os.Remove(link)
			_ = os.Symlink([]string{"other", filepath.Join(outside, "file")}[i%2], link)
			_ = os.Rename(link, filepath.Join(n.dir, "real/link"))
		}
	})
	for i := range 3 {
		all.Go(func() {
			c, err := n.dial(n.volume, n.token)
			require.NoError(t, err)
			for k := 0; goesOn(); k++ {
				for _, path := range []string{"swap/file", "real/link", "swap/../swap/file"} {
					text, err := readThrough(c, path)
					if err != nil {
						refused.Add(1)
					}
					reads.Add(1)
					require.NotContains(t, text, secret)
				}
				name := fmt.Sprintf("swap/new-%d-%d", i, k)
				writeThrough(c, name)
				_ = c.Mkdir("swap/folder")
				_ = c.Chmod("swap/file", 0o600)
				_ = c.PosixRename(name, "swap/renamed")
				_ = c.Symlink("file", "swap/symlink")
				writeThrough(c, "real/link")
				_ = c.Remove("swap/renamed")
				_ = c.RemoveDirectory("swap/folder")
			}
		})
	}
	all.Wait()
	t.Logf("%d reads, %d refused", reads.Load(), refused.Load())
	require.Greater(t, reads.Load(), refused.Load())
	requireUntouched(t, outside)
}

// requireUntouched requires that a directory has only a file with a secret, as it was.
func requireUntouched(t *testing.T, outside string) {
	t.Helper()
	list, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, list, 1)
	text, err := os.ReadFile(filepath.Join(outside, "file"))
	require.NoError(t, err)
	require.Equal(t, secret, string(text))
	info, err := os.Stat(filepath.Join(outside, "file"))
	require.NoError(t, err)
	require.NotEqual(t, os.FileMode(0o600), info.Mode())
}

func readThrough(c *client.Client, path string) (string, error) {
	f, err := c.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var b bytes.Buffer
	_, err = f.WriteTo(&b)
	return b.String(), err
}

func writeThrough(c *client.Client, path string) {
	f, err := c.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err == nil {
		_, _ = f.Write([]byte("mine"))
		f.Close()
	}
}
