package sftp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/cpu"

	"berth/api/auth"
	"berth/api/limit"
	v1 "berth/api/v1"
)

// loginTime is how long a connection may take to log in, and failureDelay how long an address
// with many failed logins waits for each answer.
const (
	loginTime    = 30 * time.Second
	failureDelay = time.Second
)

// Server serves SFTP.
type Server struct {
	deps     Deps
	log      *slog.Logger
	config   ssh.ServerConfig // without callbacks
	sessions *auth.Sessions
	audit    *auditor
	metrics  metrics
	login    time.Duration // loginTime, or less in tests
	delay    time.Duration // of each answer to an address with many failed logins

	limits limits

	stopping context.Context // ends with Shutdown
	stop     context.CancelFunc
	all      sync.WaitGroup // connections
}

// limits bound what clients do.
type limits struct {
	changes   *limit.Rate  // by tenant
	wrong     *limit.Rate  // wrong tokens, by address
	lines     *limit.Rate  // of the log about failed logins, by address
	errors    *limit.Rate  // of the log about failed requests, by tenant
	anonymous *limit.Slots // connections that have not logged in
	failures  *limit.Rate  // connections that ended without a login, by network
	sessions  *limit.Slots // sessions, by volume
	handles   *limit.Slots // open files and folders
}

func newLimits(d Deps) limits {
	return limits{changes: limit.NewRate(limit.FileChanges()), wrong: d.WrongTokens, lines: limit.NewRate(limit.FailureLines()),
		errors: limit.NewRate(limit.FailureLines()), anonymous: limit.NewSlots(limit.SFTPAnonymous),
		failures: limit.NewRate(limit.SFTPFailures()), handles: limit.NewSlots(limit.SFTPFiles),
		sessions: limit.NewSlots(func() limit.Bounds {
			c := d.Settings.Current().SFTP
			return limit.SFTPSessions(c.MaxSessions, c.MaxSessionsPerToken)
		})}
}

// New returns a Server with host keys, which does nothing until Listen is called.
func New(d Deps, keys []ssh.Signer) *Server {
	s := &Server{deps: d, log: d.Log, config: newConfig(keys), sessions: auth.NewSessions(d.Store, d.Settings),
		audit:   &auditor{store: d.Store, log: d.Log},
		metrics: newMetrics(d.Registerer), login: loginTime, delay: failureDelay,
		limits: newLimits(d)}
	s.stopping, s.stop = context.WithCancel(context.Background())
	return s
}

// newConfig returns the transport: algorithms without SHA-1, CBC, 3DES and RC4.
func newConfig(keys []ssh.Signer) ssh.ServerConfig {
	c := ssh.ServerConfig{
		ServerVersion: v1.SFTPVersion,
		PublicKeyAuthAlgorithms: []string{ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384,
			ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512},
	}
	c.KeyExchanges = []string{ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519, ssh.KeyExchangeECDHP256,
		ssh.KeyExchangeECDHP384, ssh.KeyExchangeECDHP521}
	c.Ciphers = ciphers(cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ)
	c.MACs = []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM, ssh.HMACSHA256, ssh.HMACSHA512}
	for _, key := range keys {
		c.AddHostKey(key)
	}
	return c
}

// ciphers returns the ciphers of the transport. The client's order decides, and OpenSSH's
// has ChaCha20 first. Package chacha20 has no assembly for amd64: there AES with the
// processor's instructions is faster, and fastAES omits ChaCha20.
func ciphers(fastAES bool) []string {
	all := []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherAES128CTR, ssh.CipherAES192CTR, ssh.CipherAES256CTR}
	if !fastAES {
		all = append(all, ssh.CipherChaCha20Poly1305)
	}
	return all
}

// Listen serves the connections of ln until Shutdown, and closes ln.
func (s *Server) Listen(ln net.Listener) error {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { s.sessions.Run(ctx) })
	watching.Go(func() {
		<-s.stopping.Done()
		ln.Close()
	})
	defer watching.Wait()
	defer cancel()
	defer s.stop()
	for {
		conn, err := ln.Accept()
		switch {
		case s.stopping.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case err == nil:
			// Here, so that they are in order.
			known := s.limits.anonymous.Push(limit.Claim{Tenant: limit.Network(addressOf(conn))}, func() { conn.Close() })
			s.all.Go(func() { s.serve(conn, known) })
		case errors.Is(err, net.ErrClosed):
			return err
		default: // no other error ends the process, see ADR 0029
			s.log.Warn("sftp: a connection was not accepted", slog.Any("err", err))
			pause(s.stopping, time.Second)
		}
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Shutdown closes the listener and every connection, and waits until all have ended or
// ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	s.sessions.Close()
	done := make(chan struct{})
	go func() {
		s.all.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return errors.Join(err, s.audit.flush())
}

// serve serves one connection, and calls known when it has logged in or ended. A panic ends that
// connection only.
func (s *Server) serve(conn net.Conn, known func()) {
	defer conn.Close()
	address := addressOf(conn)
	defer s.recovered(func() {}, slog.String("address", address))
	ctx, cancel := context.WithCancel(s.stopping)
	defer cancel()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer known()
	_ = conn.SetDeadline(time.Now().Add(s.login))
	l := &login{server: s, ctx: ctx, address: address}
	defer l.end()
	config := s.config
	config.PasswordCallback, config.PublicKeyCallback, config.VerifiedPublicKeyCallback = l.password, l.publicKey, l.verified
	counted := &meter{Conn: conn}
	if s.limits.failures.Left(limit.Network(address), 1) > 0 { // a key exchange takes milliseconds of a core
		pause(ctx, s.delay)
	}
	client, channels, requests, err := ssh.NewServerConn(counted, &config)
	if err != nil || l.session == nil {
		s.limits.failures.Take(limit.Network(address), 1)
		s.log.Debug("sftp: a connection ended without a login", slog.String("address", address), slog.Any("err", err))
		return
	}
	known()
	_ = conn.SetDeadline(time.Time{})
	l.session.meter, l.session.close = counted, func() { client.Close() }
	s.all.Go(func() { ssh.DiscardRequests(requests) })
	l.session.run(channels)
}

// addressOf returns the client's address without the port.
func addressOf(conn net.Conn) string {
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("").String()
	}
	return conn.RemoteAddr().String()
}
