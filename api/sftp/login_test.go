package sftp

import (
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	client "github.com/pkg/sftp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/store"
)

func TestLoginUsers(t *testing.T) {
	h := newHarness(t)
	h.container("survival", h.volume)
	h.container("other", h.makeVolume())
	h.write("motd.txt", "welcome")
	all, limited := h.mint(auth.Grant{}), h.mint(auth.Grant{Containers: []string{"survival"}})
	for _, user := range []string{h.volume, h.volume[:8], strings.ToUpper(h.volume), "survival"} {
		for _, token := range []string{adminToken, all, limited} {
			c := h.login(user, token)
			info, err := c.Stat("motd.txt")
			require.NoError(t, err, user)
			require.Equal(t, int64(7), info.Size())
			require.NoError(t, c.Close())
		}
	}
	for user, token := range map[string]string{"other": limited, "nobody": adminToken, "": adminToken, h.volume[:7]: adminToken,
		h.volume: "berth_ffffffffffffffffffffffffffffffff", "survival": ""} {
		_, err := h.dial(user, ssh.Password(token))
		require.ErrorContains(t, err, "unable to authenticate", user)
	}
	require.Equal(t, 6.0, testutil.ToFloat64(h.server.metrics.logins.WithLabelValues(loginRefused)))
	require.Equal(t, 12.0, testutil.ToFloat64(h.server.metrics.logins.WithLabelValues(loginAccepted)))
	require.Contains(t, h.log.String(), `msg="sftp login failed" address=127.0.0.1 user=`)
	require.NotContains(t, h.log.String(), "berth_ffff")
}

func TestLoginScopes(t *testing.T) {
	h := newHarness(t)
	h.write("file", "text")
	_, err := h.dial(h.volume, ssh.Password(h.mint(auth.Grant{Scopes: []v1.Scope{v1.ScopeConsole, v1.ScopePower}})))
	require.ErrorContains(t, err, "unable to authenticate")
	require.Equal(t, 1.0, testutil.ToFloat64(h.server.metrics.logins.WithLabelValues(loginDenied)))

	c := h.login(h.volume, h.mint(auth.Grant{Scopes: []v1.Scope{v1.ScopeRead}}))
	f, err := c.Open("file")
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "text", string(b))
	for name, change := range changes {
		require.ErrorIs(t, change(c, "file"), os.ErrPermission, name)
	}
	require.Equal(t, "text", h.read("file"))
	require.Len(t, h.audit(), 1, "the session alone")
}

// changes are all requests that change something.
var changes = map[string]func(c *client.Client, path string) error{
	"create": func(c *client.Client, path string) error { return closed(c.OpenFile(path, os.O_WRONLY|os.O_CREATE)) },
	"write":  func(c *client.Client, path string) error { return closed(c.OpenFile(path, os.O_WRONLY)) },
	"append": func(c *client.Client, path string) error { return closed(c.OpenFile(path, os.O_APPEND|os.O_WRONLY)) },
	"trunc": func(c *client.Client, path string) error {
		return closed(c.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC))
	},
	"excl": func(c *client.Client, path string) error {
		return closed(c.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL))
	},
	"mkdir":    func(c *client.Client, path string) error { return c.Mkdir(path) },
	"rmdir":    func(c *client.Client, path string) error { return c.RemoveDirectory(path) },
	"rename":   func(c *client.Client, path string) error { return c.Rename(path, "new") },
	"posix":    func(c *client.Client, path string) error { return c.PosixRename(path, "new") },
	"symlink":  func(c *client.Client, path string) error { return c.Symlink("new", path) },
	"chmod":    func(c *client.Client, path string) error { return c.Chmod(path, 0o600) },
	"chown":    func(c *client.Client, path string) error { return c.Chown(path, 12345, 12345) },
	"chtimes":  func(c *client.Client, path string) error { return c.Chtimes(path, time.Now(), time.Now()) },
	"truncate": func(c *client.Client, path string) error { return c.Truncate(path, 1) },
}

func closed(f *client.File, err error) error {
	if err == nil {
		err = f.Close()
	}
	return err
}

func TestLoginWithKeys(t *testing.T) {
	h := newHarness(t)
	h.container("survival", h.volume)
	own, line := newKey(t)
	keys := func(lines ...string) []string {
		var f v1.FieldErrors
		list := auth.CheckKeys(&f, lines)
		require.NoError(t, f.Err())
		return list
	}
	login := func(user string, key ssh.Signer) (*ssh.Client, error) { return h.dial(user, ssh.PublicKeys(key)) }
	_, err := login(h.volume, own)
	require.Error(t, err, "no token has the key")

	read := h.mint(auth.Grant{Scopes: []v1.Scope{v1.ScopeRead}, SSHKeys: keys(line), TTL: 2 * time.Hour})
	c, err := login("survival", own)
	require.NoError(t, err)
	files, err := client.NewClient(c)
	require.NoError(t, err)
	require.ErrorIs(t, files.Mkdir("folder"), os.ErrPermission)

	_, other := newKey(t)
	h.mint(auth.Grant{Containers: []string{"survival"}, SSHKeys: keys(other, line)})
	c, err = login(h.volume, own)
	require.NoError(t, err)
	files, err = client.NewClient(c)
	require.NoError(t, err)
	require.NoError(t, files.Mkdir("folder"), "of several tokens, one that may write")

	_, err = login(h.makeVolume()[:8], own)
	require.NoError(t, err, "the token that may read has no limit")
	require.NoError(t, auth.Revoke(h.store, v1.Secret(read).Fingerprint()))
	_, err = login(h.makeVolume(), own)
	require.Error(t, err)
	unknown, _ := newKey(t)
	_, err = login(h.volume, unknown)
	require.Error(t, err)
}

// TestKeyMustBeOwned offers the public key of another client, and signs with its own.
func TestKeyMustBeOwned(t *testing.T) {
	h := newHarness(t)
	own, line := newKey(t)
	forged, _ := newKey(t)
	var f v1.FieldErrors
	h.mint(auth.Grant{SSHKeys: auth.CheckKeys(&f, []string{line})})
	_, err := h.dial(h.volume, ssh.PublicKeys(impostor{own.PublicKey(), forged}))
	require.Error(t, err)
	require.Zero(t, testutil.ToFloat64(h.server.metrics.sessions))
}

type impostor struct {
	public ssh.PublicKey
	ssh.Signer
}

func (i impostor) PublicKey() ssh.PublicKey { return i.public }

func TestSingleUseToken(t *testing.T) {
	h := newHarness(t)
	token := h.mint(auth.Grant{SingleUse: true})
	c := h.login(h.volume, token)
	_, err := h.dial(h.volume, ssh.Password(token))
	require.Error(t, err, "the login was the use")
	require.NoError(t, c.Mkdir("still"), "the session goes on")
	c.Close()
}

// TestSessionsOfAVolume: the tokens of one container share the limits of a tenant.
func TestSessionsOfAVolume(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) { c.SFTP.MaxSessionsPerToken = 2 })
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return store.Containers.Create(tx, "mc", v1.ContainerSpec{VolumeID: h.volume})
	}))
	limited := func() string { return h.mint(auth.Grant{Containers: []string{"mc"}}) }
	h.login("mc", limited())
	h.login("mc", limited())
	_, err := h.dial("mc", ssh.Password(limited()))
	require.Error(t, err)
	h.login("mc", h.mint(auth.Grant{}))
}

// TestAcceptErrors: no error of Accept ends the server.
func TestAcceptErrors(t *testing.T) {
	h := newHarness(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = h.server.Listen(&failing{Listener: ln, errs: []error{syscall.ENOMEM, syscall.EPROTO}}) }()
	h.address = ln.Addr().String()
	h.login(h.volume, adminToken)
}

// failing is a listener whose Accept returns some errors, then connections.
type failing struct {
	net.Listener
	errs []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.errs) == 0 {
		return f.Listener.Accept()
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: err}
}

func TestSessionLimits(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) { c.SFTP.MaxSessions, c.SFTP.MaxSessionsPerToken = 3, 2 })
	token := h.mint(auth.Grant{})
	first, err := h.dial(h.volume, ssh.Password(token))
	require.NoError(t, err)
	h.login(h.volume, token)
	_, err = h.dial(h.volume, ssh.Password(token))
	require.Error(t, err, "of one token")
	h.login(h.volume, adminToken)
	_, err = h.dial(h.volume, ssh.Password(adminToken))
	require.Error(t, err, "in all")
	require.Equal(t, 2.0, testutil.ToFloat64(h.server.metrics.logins.WithLabelValues(loginLimited)))
	require.Equal(t, 3.0, testutil.ToFloat64(h.server.metrics.sessions))
	first.Close()
	h.eventually("a free place", func() bool {
		c, err := h.dial(h.volume, ssh.Password(token))
		return err == nil && c != nil
	})
}

// TestLoginThrottle requires that answers are delayed from the tenth failed login on,
// and that the right token still logs in.
func TestLoginThrottle(t *testing.T) {
	const delay = 300 * time.Millisecond
	h := newHarnessWith(t, func(s *Server) { s.delay = delay })
	took := func(token string) time.Duration {
		began := time.Now()
		c, err := h.dial(h.volume, ssh.Password(token))
		require.Equal(t, token == adminToken, err == nil)
		if err == nil {
			c.Close()
		}
		return time.Since(began)
	}
	for range 9 {
		took("wrong")
	}
	require.Zero(t, h.server.limits.wrong.Left("127.0.0.1", limit.WrongLogin))
	require.GreaterOrEqual(t, took("wrong"), delay)
	require.GreaterOrEqual(t, took(adminToken), delay)
	require.LessOrEqual(t, h.server.limits.wrong.Left("127.0.0.1", limit.WrongLogin), 6*time.Second)
	require.Zero(t, h.server.limits.wrong.Left("127.0.0.2", limit.WrongLogin))
}

// TestConnectionsWithoutLogin: connections of an address that end without a login make its next ones wait.
func TestConnectionsWithoutLogin(t *testing.T) {
	const delay = 300 * time.Millisecond
	h := newHarnessWith(t, func(s *Server) { s.delay = delay })
	for range limit.SFTPFailures().Burst {
		conn, err := net.Dial("tcp", h.address)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	h.eventually("the failures are counted", func() bool { return h.server.limits.failures.Left("127.0.0.1", 10) > 0 })
	h.server.limits.failures.Count("127.0.0.1", limit.SFTPFailures().Burst) // time has passed
	began := time.Now()
	h.login(h.volume, adminToken)
	require.GreaterOrEqual(t, time.Since(began), delay)
}

func TestLoginTime(t *testing.T) {
	h := newHarnessWith(t, func(s *Server) { s.login = 200 * time.Millisecond })
	conn, err := net.Dial("tcp", h.address)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	_, err = io.Copy(io.Discard, conn)
	require.NoError(t, err, "the server closes the connection")
}

// TestHalfOpenConnections opens far more connections than are kept. Then a client logs in.
func TestHalfOpenConnections(t *testing.T) {
	h := newHarness(t)
	for range 300 {
		conn, err := net.Dial("tcp", h.address)
		require.NoError(t, err)
		defer conn.Close()
	}
	h.eventually("few connections", func() bool {
		return h.server.limits.anonymous.Used() == limit.SFTPAnonymous().Tenant
	})
	h.login(h.volume, adminToken)
}

func TestAlgorithms(t *testing.T) {
	h := newHarness(t)
	weak := []func(*ssh.ClientConfig){
		func(c *ssh.ClientConfig) { c.KeyExchanges = []string{ssh.InsecureKeyExchangeDH14SHA1} },
		func(c *ssh.ClientConfig) { c.KeyExchanges = []string{ssh.InsecureKeyExchangeDH1SHA1} },
		func(c *ssh.ClientConfig) { c.Ciphers = []string{ssh.InsecureCipherAES128CBC} },
		func(c *ssh.ClientConfig) { c.Ciphers = []string{ssh.InsecureCipherTripleDESCBC} },
		func(c *ssh.ClientConfig) { c.Ciphers = []string{ssh.InsecureCipherRC4} },
		func(c *ssh.ClientConfig) {
			c.Ciphers, c.MACs = []string{ssh.CipherAES128CTR}, []string{ssh.HMACSHA1}
		},
		func(c *ssh.ClientConfig) { c.HostKeyAlgorithms = []string{ssh.KeyAlgoRSA} },
	}
	for i, change := range weak {
		config := h.config(h.volume, ssh.Password(adminToken))
		change(config)
		_, err := ssh.Dial("tcp", h.address, config)
		require.ErrorContains(t, err, "no common algorithm", i)
	}
}

// TestOnlyFiles requires that there is no shell, no command and no forwarding, and that
// the connection goes on.
func TestOnlyFiles(t *testing.T) {
	h := newHarness(t)
	conn, err := h.dial(h.volume, ssh.Password(adminToken))
	require.NoError(t, err)
	for _, kind := range []string{"direct-tcpip", "forwarded-tcpip", "x11", "tun@openssh.com", "direct-streamlocal@openssh.com"} {
		_, _, err := conn.OpenChannel(kind, ssh.Marshal(struct {
			A string
			B uint32
			C string
			D uint32
		}{"127.0.0.1", 22, "127.0.0.1", 1}))
		require.ErrorContains(t, err, "only the subsystem sftp", kind)
	}
	ok, _, err := conn.SendRequest("tcpip-forward", true, ssh.Marshal(struct {
		A string
		B uint32
	}{"0.0.0.0", 0}))
	require.NoError(t, err)
	require.False(t, ok)
	for _, run := range []func(*ssh.Session) error{
		func(s *ssh.Session) error { return s.Run("id") },
		func(s *ssh.Session) error { return s.Shell() },
		func(s *ssh.Session) error { return s.RequestSubsystem("netconf") },
		func(s *ssh.Session) error { return s.RequestPty("xterm", 24, 80, nil) },
		func(s *ssh.Session) error { return s.Setenv("LD_PRELOAD", "x") },
	} {
		var session *ssh.Session
		h.eventually("a free channel", func() bool {
			session, err = conn.NewSession()
			return err == nil
		})
		require.Error(t, run(session))
		session.Close()
	}
	h.eventually("files", func() bool {
		c, err := client.NewClient(conn)
		if err != nil {
			return false
		}
		defer c.Close()
		_, err = c.ReadDir(".")
		return err == nil
	})
}

func TestHostKeys(t *testing.T) {
	c := v1.SFTPConfig{HostKey: t.TempDir() + "/sftp/ed25519", HostKeys: []string{v1.HostKeyECDSA, v1.HostKeyRSA}}
	first, err := LoadHostKeys(c)
	require.NoError(t, err)
	again, err := LoadHostKeys(c)
	require.NoError(t, err)
	require.Len(t, first, 3)
	for i, kind := range []string{v1.HostKeyED25519, v1.HostKeyECDSA, v1.HostKeyRSA} {
		info, err := os.Stat(v1.HostKeyFile(c.HostKey, kind))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		require.Equal(t, first[i].PublicKey(), again[i].PublicKey())
	}
	h := newHarnessWith(t, func(s *Server) { s.config = newConfig(first) })
	for _, kind := range []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSA} {
		config := h.config(h.volume, ssh.Password(adminToken))
		config.HostKeyCallback = ssh.InsecureIgnoreHostKey()
		config.HostKeyAlgorithms = []string{kind}
		conn, err := ssh.Dial("tcp", h.address, config)
		if kind == ssh.KeyAlgoRSA { // with SHA-1
			require.ErrorContains(t, err, "no common algorithm")
			continue
		}
		require.NoError(t, err, kind)
		require.NoError(t, conn.Close())
	}
	ed, err := os.ReadFile(c.HostKey)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(v1.HostKeyFile(c.HostKey, v1.HostKeyRSA), ed, 0o600))
	_, err = LoadHostKeys(c)
	require.ErrorContains(t, err, "ssh-keygen -t rsa")
	require.NoError(t, os.WriteFile(c.HostKey, []byte("broken"), 0o600))
	_, err = LoadHostKeys(c)
	require.ErrorContains(t, err, "sftp.host_key")
}

func TestSessionEnds(t *testing.T) {
	for name, end := range map[string]func(h *harness, token string){
		"revoked": func(h *harness, token string) {
			require.NoError(h.t, auth.Revoke(h.store, v1.Secret(token).Fingerprint()))
		},
		"deleted": func(h *harness, _ string) {
			require.NoError(h.t, intent.DeleteVolume(store.NewRequest(h.store, v1.Actor{}, v1.Audit{}), h.volume))
		},
		"idle": func(h *harness, _ string) {
			h.settings.change(func(c *v1.Config) { c.SFTP.IdleTimeout = v1.Duration(time.Millisecond) })
		},
		"shutdown": func(h *harness, _ string) { h.server.sessions.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			token := h.mint(auth.Grant{})
			c := h.login(h.volume, token)
			end(h, token)
			require.Error(t, c.Wait())
			want := map[string]int{"revoked": 401, "deleted": 404, "idle": 408, "shutdown": 503}[name]
			h.eventually("the entry is completed", func() bool {
				list := h.audit()
				e := list[0]
				return e.Action == "session.open" && e.Status == want && e.Actor.Via == v1.ViaSFTP && e.Actor.Address == "127.0.0.1"
			})
			require.Zero(t, testutil.ToFloat64(h.server.metrics.sessions))
		})
	}
}
