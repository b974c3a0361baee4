package doctor

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestHostKeyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ed25519")
	require.Equal(t, Warn, checkHostKey(file).Status, "it does not exist")
	require.NoError(t, os.WriteFile(file, []byte("key"), 0o600))
	require.Equal(t, OK, checkHostKey(file).Status)
	require.NoError(t, os.Chmod(file, 0o644))
	require.Equal(t, failed(file+" is open to other users (mode 0644)", "run chmod 600 on it"), checkHostKey(file))
	require.Equal(t, Warn, checkHostKey(file+"/x").Status)
}

func TestSFTPPort(t *testing.T) {
	answers := make(chan string, 2)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(<-answers))
			conn.Close()
		}
	}()
	c := v1.SFTPConfig{Enabled: true, Host: "0.0.0.0", Port: ln.Addr().(*net.TCPAddr).Port, MaxSessions: 64}
	answers <- "SSH-2.0-berth\r\n"
	require.Equal(t, OK, checkSFTPPort(t.Context(), c).Status)
	answers <- "SSH-2.0-OpenSSH_9.2\r\n"
	require.Equal(t, Fail, checkSFTPPort(t.Context(), c).Status)
	require.NoError(t, ln.Close())
	<-done
	require.Equal(t, Warn, checkSFTPPort(t.Context(), c).Status)

	e := hostWith(t, nil)
	e.Config = configured(func(*v1.Config) {})
	require.Equal(t, ok("is not enabled"), checkSFTP(t.Context(), e))
	e.Config = configured(func(c *v1.Config) { c.SFTP.Enabled = true })
	require.Equal(t, Warn, checkSFTP(t.Context(), e).Status, "the key does not exist")
}
