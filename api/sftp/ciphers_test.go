package sftp

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/cpu"
)

// TestCiphers logs in as OpenSSH does, whose first choice is ChaCha20.
func TestCiphers(t *testing.T) {
	require.NotContains(t, ciphers(true), ssh.CipherChaCha20Poly1305)
	require.Contains(t, ciphers(false), ssh.CipherChaCha20Poly1305)
	h := newHarness(t)
	config := h.config(h.volume, ssh.Password(adminToken))
	config.Ciphers = []string{ssh.CipherChaCha20Poly1305, ssh.CipherAES128CTR, ssh.CipherAES128GCM}
	conn, err := h.dialWith(config)
	require.NoError(t, err)
	want := ssh.CipherChaCha20Poly1305
	if cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ {
		want = ssh.CipherAES128CTR
	}
	algorithms := conn.Conn.(ssh.AlgorithmsConnMetadata).Algorithms()
	require.Equal(t, want, algorithms.Read.Cipher)
	require.Equal(t, want, algorithms.Write.Cipher)
}
