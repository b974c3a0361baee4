package sftp_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"testing"

	server "github.com/pkg/sftp"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// startLibrary starts the server of pkg/sftp with the transport that berth uses, and
// without anything of berth: what it takes, the libraries take.
func startLibrary(b *testing.B, dir string) yardstick {
	b.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(b, err)
	key, err := ssh.NewSignerFromKey(private)
	require.NoError(b, err)
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.Ciphers = []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherChaCha20Poly1305}
	config.AddHostKey(key)
	files := filepath.Join(dir, "library")
	require.NoError(b, os.Mkdir(files, 0o755))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go serveLibrary(conn, config, files)
		}
	}()
	b.Cleanup(func() { ln.Close() })
	return yardstick{name: "library", user: "any", dir: files, port: ln.Addr().(*net.TCPAddr).Port}
}

// serveLibrary serves a connection until its client closes it.
func serveLibrary(conn net.Conn, config *ssh.ServerConfig, dir string) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for next := range channels {
		channel, requests, err := next.Accept()
		if err != nil {
			return
		}
		go serveChannel(channel, requests, dir)
	}
}

// serveChannel serves the subsystem sftp, and refuses anything else.
func serveChannel(channel ssh.Channel, requests <-chan *ssh.Request, dir string) {
	defer channel.Close()
	for r := range requests {
		_ = r.Reply(r.Type == "subsystem", nil)
		switch r.Type {
		case "exec":
			return
		case "subsystem":
			go ssh.DiscardRequests(requests)
			if s, err := server.NewServer(channel, server.WithServerWorkingDirectory(dir)); err == nil {
				_ = s.Serve()
			}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{})) // scp requires it
			return
		}
	}
}
