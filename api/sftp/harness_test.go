package sftp

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	client "github.com/pkg/sftp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/runtime/volume"
	"berth/store"
)

const adminToken = "berth_0123456789abcdef0123456789abcdef"

// patience bounds every wait of a test.
const patience = 3 * time.Minute

// settings is a configuration that a test changes.
type settings struct {
	mu     sync.Mutex
	config v1.Config
	next   chan struct{}
}

func (s *settings) Current() v1.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config
}

func (s *settings) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

func (s *settings) change(f func(*v1.Config)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.config)
	close(s.next)
	s.next = make(chan struct{})
}

// harness is a server on a loopback port, with a store and one volume.
type harness struct {
	t        testing.TB
	store    *store.Store
	settings *settings
	volumes  *volume.Manager
	registry *prometheus.Registry
	log      *syncBuffer
	server   *Server
	address  string
	volume   string // id
	dir      string // of the volume
}

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	return len(p), nil
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	return newHarnessWith(t, func(*Server) {})
}

// newHarnessWith changes the server before it listens.
func newHarnessWith(t testing.TB, change func(*Server)) *harness {
	t.Helper()
	db, err := store.Open(t.TempDir(), store.Options{})
	require.NoError(t, err)
	h := &harness{t: t, store: db, registry: prometheus.NewRegistry(), log: &syncBuffer{}}
	config := v1.Defaults()
	config.Authorization.Token = adminToken
	config.Storage.DataPath = t.TempDir()
	config.Complete()
	h.settings = &settings{config: config, next: make(chan struct{})}
	h.volumes, err = volume.New(config.Storage.VolumesPath, volume.Options{UID: -1, GID: -1})
	require.NoError(t, err)
	keys, err := LoadHostKeys(config.SFTP)
	require.NoError(t, err)
	h.server = New(Deps{Store: db, Settings: h.settings, Files: h.volumes, Registerer: h.registry, WrongTokens: limit.NewRate(limit.WrongTokens()),
		Log: slog.New(slog.NewTextHandler(h.log, nil))}, keys)
	change(h.server)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h.address = ln.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- h.server.Listen(ln) }()
	h.volume = h.makeVolume()
	h.dir = h.volumes.Path(h.volume)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, h.server.Shutdown(ctx))
		require.NoError(t, <-ended)
		require.NoError(t, db.Close())
	})
	return h
}

func (h *harness) makeVolume() string {
	h.t.Helper()
	id, err := intent.CreateVolume(h.store, v1.VolumeSpec{})
	require.NoError(h.t, err)
	require.NoError(h.t, h.volumes.Ensure(id))
	return id
}

// container stores a container that uses a volume.
func (h *harness) container(id, volume string) {
	h.t.Helper()
	require.NoError(h.t, h.store.Update(func(tx *store.Tx) error {
		return store.Containers.Create(tx, id, v1.ContainerSpec{VolumeID: volume})
	}))
}

// mint mints a token; by default it has the scope files and is valid for an hour.
func (h *harness) mint(g auth.Grant) string {
	h.t.Helper()
	if g.TTL == 0 {
		g.TTL = time.Hour
	}
	if g.Scopes == nil {
		g.Scopes = []v1.Scope{v1.ScopeFiles}
	}
	c := h.settings.Current().Authorization
	admin, err := auth.Authenticate(h.store, c, adminToken)
	require.NoError(h.t, err)
	secret, _, err := auth.Mint(h.store, c, admin, g)
	require.NoError(h.t, err)
	return secret.Reveal()
}

// config returns the configuration of a client.
func (h *harness) config(user string, methods ...ssh.AuthMethod) *ssh.ClientConfig {
	return &ssh.ClientConfig{User: user, Auth: methods, Timeout: patience, HostKeyCallback: ssh.InsecureIgnoreHostKey()}
}

// dial logs in.
func (h *harness) dial(user string, methods ...ssh.AuthMethod) (*ssh.Client, error) {
	return h.dialWith(h.config(user, methods...))
}

func (h *harness) dialWith(config *ssh.ClientConfig) (*ssh.Client, error) {
	conn, err := net.DialTimeout("tcp", h.address, patience)
	require.NoError(h.t, err)
	require.NoError(h.t, conn.SetDeadline(time.Now().Add(3*patience)))
	c, channels, requests, err := ssh.NewClientConn(conn, h.address, config)
	if err != nil {
		conn.Close()
		return nil, err
	}
	k := ssh.NewClient(c, channels, requests)
	h.t.Cleanup(func() { k.Close() })
	return k, nil
}

// login opens a session with a token as password.
func (h *harness) login(user, token string) *client.Client {
	h.t.Helper()
	conn, err := h.dial(user, ssh.Password(token))
	require.NoError(h.t, err)
	c, err := client.NewClient(conn)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { c.Close() })
	return c
}

// open opens a session of the volume with a token of the scope files.
func (h *harness) open() *client.Client {
	h.t.Helper()
	return h.login(h.volume, h.mint(auth.Grant{}))
}

// write makes a file in the volume.
func (h *harness) write(name, content string) {
	h.t.Helper()
	file := filepath.Join(h.dir, name)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(h.t, os.WriteFile(file, []byte(content), 0o644))
}

func (h *harness) read(name string) string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.dir, name))
	require.NoError(h.t, err)
	return string(b)
}

// audit returns the entries of the audit log.
func (h *harness) audit() (list []v1.AuditEntry) {
	h.t.Helper()
	require.NoError(h.t, h.server.audit.flush())
	list, err := store.ReadAudit(h.store.Read(), 0, 100_000, v1.AuditFilter{})
	require.NoError(h.t, err)
	return list
}

// eventually waits for a condition.
func (h *harness) eventually(what string, met func() bool) {
	h.t.Helper()
	require.Eventually(h.t, met, patience, 5*time.Millisecond, what)
}

// newKey returns a new private key and its line of an authorized_keys file.
func newKey(t testing.TB) (ssh.Signer, string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return key, string(ssh.MarshalAuthorizedKey(key.PublicKey()))
}
