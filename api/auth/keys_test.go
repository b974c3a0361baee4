package auth_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/auth"
	v1 "berth/api/v1"
	"berth/store"
)

// lineOf returns a new public key as a line of an authorized_keys file.
func lineOf(t *testing.T, key any) string {
	t.Helper()
	public, err := ssh.NewPublicKey(key)
	require.NoError(t, err)
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

func ed25519Line(t *testing.T) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return lineOf(t, public)
}

func TestCheckKeys(t *testing.T) {
	good := ed25519Line(t)
	strong, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	check := func(lines ...string) ([]string, string) {
		var f v1.FieldErrors
		keys := auth.CheckKeys(&f, lines)
		if err := f.Err(); err != nil {
			return keys, err.Error()
		}
		return keys, ""
	}
	keys, refused := check("  "+good+" alice@example \n", good, lineOf(t, &strong.PublicKey))
	require.Empty(t, refused)
	require.Equal(t, []string{good, lineOf(t, &strong.PublicKey)}, keys)
	require.True(t, strings.HasPrefix(auth.KeyFingerprint(good), "SHA256:"))
	for line, want := range map[string]string{
		"":                         "ssh_keys[1]: must be one line",
		"ssh-ed25519":              "ssh_keys[1]: must be one line",
		"ssh-ed25519 AAAA":         "ssh_keys[1]: must be one line",
		good + "\n" + good:         "ssh_keys[1]: must be one line",
		"no-pty " + good:           "ssh_keys[1]: must have no options",
		`from="*" ` + good:         "ssh_keys[1]: must have no options",
		lineOf(t, &weak.PublicKey): "ssh_keys[1]: must be an RSA key of at least 2048 bits",
	} {
		_, refused := check(good, line)
		require.Contains(t, refused, want, line)
	}
	many := make([]string, 17)
	for i := range many {
		many[i] = good
	}
	_, refused = check(many...)
	require.Contains(t, refused, "ssh_keys: must have at most 16 keys")
}

func TestAuthenticateKey(t *testing.T) {
	s, c := clockedStore(t)
	containers(t, s, "mc")
	line, other := ed25519Line(t), ed25519Line(t)
	find := func(key string) (ids []string) {
		list, err := auth.AuthenticateKey(s, inForce(configured), key)
		require.NoError(t, err)
		for _, p := range list {
			ids = append(ids, p.TokenID)
		}
		return ids
	}
	require.Empty(t, find(line))
	short := mint(t, s, auth.Grant{TTL: time.Minute, SSHKeys: []string{line, other}})
	long := mint(t, s, auth.Grant{SSHKeys: []string{line}, Containers: []string{"mc"}})
	once := mint(t, s, auth.Grant{SSHKeys: []string{other}, SingleUse: true})
	child := mintWith(t, s, long, auth.Grant{})
	require.ElementsMatch(t, []string{short.Fingerprint(), long.Fingerprint()}, find(line), "a child has none of the keys")
	require.ElementsMatch(t, []string{short.Fingerprint(), once.Fingerprint()}, find(other))
	require.NoError(t, auth.Spend(s, as(t, s, once)))
	require.Equal(t, []string{short.Fingerprint()}, find(other), "a spent token")
	list, err := auth.AuthenticateKey(s, inForce(configured), line)
	require.NoError(t, err)
	for _, p := range list {
		require.Equal(t, p.TokenID == long.Fingerprint(), p.Restricted())
		require.True(t, p.CanAccess("mc"))
	}
	c.forward(2 * time.Minute)
	require.Equal(t, []string{long.Fingerprint()}, find(line), "an expired token")
	require.NoError(t, auth.Revoke(s, long.Fingerprint()))
	require.Empty(t, find(line))
	require.NotContains(t, store.TokensByKey(s.Read(), line), long.Fingerprint(), "the index has no entry of a removed token")
	_ = child
	list, err = auth.AuthenticateKey(s, inForce(auth.NewSecret()), other)
	require.NoError(t, err)
	require.Empty(t, list, "another configured token")
}
