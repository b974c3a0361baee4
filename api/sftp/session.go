package sftp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"berth/api/auth"
	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/store"
)

// Reasons why a session ends, besides those of package auth.
var (
	errIdle = errors.New("no request for sftp.idle_timeout")
	errGone = errors.New("the client has closed the connection")
)

// statusOpen is the status of the entry of a session that has not ended.
const statusOpen = http.StatusSwitchingProtocols

// session is a connection that is logged in.
type session struct {
	server    *Server
	principal auth.Principal
	access
	actor   v1.Actor
	address string // of the connection
	tenant  string // whose limits it uses
	id      string
	entry   *store.Request
	leave   func() // ends it for the limits
	began   time.Time

	ctx    context.Context // ends with the session, and its cause is the reason
	cancel context.CancelCauseFunc
	done   func() // of auth.Sessions; nil before run

	active   atomic.Int64 // time of the last request or part of an answer, in Unix nanoseconds
	channels atomic.Int32 // open
	writing  sync.Map     // *file by path, those that are open for writing

	meter *meter // of the connection
	close func() // closes the connection
}

// newSession creates the session of a principal, with its entry in the audit log. leave
// is called when the session ends, unless newSession fails.
func newSession(srv *Server, p auth.Principal, a access, address string, leave func()) (*session, error) {
	var b [16]byte
	rand.Read(b[:]) // never fails, as its documentation says
	s := &session{server: srv, principal: p, access: a, actor: p.Actor(v1.ViaSFTP, address), address: address,
		tenant: tenantOf(p, a.volume), id: hex.EncodeToString(b[:]),
		leave: leave, began: time.Now(), close: func() {}}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.entry = store.NewRequest(srv.deps.Store, s.actor, s.describe("session.open", ""))
	if err := s.entry.Finish(statusOpen, nil); err != nil {
		s.cancel(err)
		return nil, err
	}
	srv.metrics.sessions.Inc()
	return s, nil
}

// run serves the channels of the session until it ends.
func (s *session) run(channels <-chan ssh.NewChannel) {
	log := s.server.log.With(slog.String("session", s.id), slog.String("address", s.address))
	s.touch()
	done, err := s.server.sessions.Begin(&auth.Session{Principal: s.principal, Check: s.check,
		End: func(reason error) { s.cancel(reason); s.close() }})
	if err != nil {
		s.cancel(err)
		return
	}
	s.done = done
	log.Info("sftp session began", slog.String("volume", s.volume), slog.String("token", s.actor.TokenID), slog.Bool("read_only", s.readOnly))
	var all sync.WaitGroup
	for next := range channels {
		s.accept(next, &all)
	}
	if s.meter.hasFlooded() {
		s.cancel(errFlood)
	}
	s.cancel(errGone)
	all.Wait()
	log.Info("sftp session ended", slog.Any("reason", context.Cause(s.ctx)),
		slog.Duration("took", time.Since(s.began).Round(time.Millisecond)))
}

// check returns why the session must end although its token is valid.
func (s *session) check(tx *store.Tx, p auth.Principal) error {
	idle := time.Since(time.Unix(0, s.active.Load()))
	if idle > time.Duration(s.server.deps.Settings.Current().SFTP.IdleTimeout) {
		return errIdle
	}
	return onVolume(tx, p, s.volume)
}

// valid returns why the session must end, for a request that has waited.
func (s *session) valid() error {
	tx := s.server.deps.Store.Read()
	p, err := s.principal.Verify(tx, s.server.deps.Settings.Current().Authorization)
	if err != nil {
		return err
	}
	return s.check(tx, p)
}

// end completes the entry of the session and frees what it holds.
func (s *session) end() {
	s.cancel(errGone)
	if s.done != nil {
		s.done()
	}
	s.server.metrics.sessions.Dec()
	if err := s.entry.MustFinish(endStatus(context.Cause(s.ctx)), nil); err != nil {
		s.server.log.Warn("sftp: the end of a session could not be recorded", slog.String("session", s.id), slog.Any("err", err))
	}
	if err := auth.Forget(s.server.deps.Store, s.principal); err != nil {
		s.server.log.Warn("a spent token is kept until it expires", slog.String("token", s.principal.TokenID), slog.Any("err", err))
	}
	s.leave()
}

// endStatus returns the status of a session that has ended.
func endStatus(reason error) int {
	switch {
	case errors.Is(reason, auth.ErrUnauthorized):
		return http.StatusUnauthorized
	case errors.Is(reason, v1.ErrVolumeNotFound):
		return http.StatusNotFound
	case errors.Is(reason, errIdle):
		return http.StatusRequestTimeout
	case errors.Is(reason, errFlood):
		return http.StatusTooManyRequests
	case errors.Is(reason, auth.ErrShutdown):
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// openHandle counts an open file or folder, and returns the function that ends it.
func (s *session) openHandle() (leave func(), err error) {
	leave, err = s.server.limits.handles.Enter(s.ctx, limit.Claim{Tenant: s.tenant, Object: s.id})
	switch {
	case errors.Is(err, limit.ErrAll):
		return nil, errHost
	case err != nil:
		return nil, errHandles
	}
	return leave, nil
}

func (s *session) touch() { s.active.Store(time.Now().UnixNano()) }

// maxChannels is how many channels of a connection may be open.
const maxChannels = 8

// accept serves a channel of type session.
func (s *session) accept(next ssh.NewChannel, all *sync.WaitGroup) {
	if next.ChannelType() != "session" {
		_ = next.Reject(ssh.Prohibited, "only the subsystem sftp is available")
		return
	}
	leave, err := s.openChannel()
	if err != nil {
		_ = next.Reject(ssh.ResourceShortage, "too many SFTP sessions are open: close one")
		return
	}
	channel, requests, err := next.Accept()
	if err != nil {
		leave()
		return
	}
	closed := s.meter.open()
	all.Go(func() {
		defer s.server.recovered(func() { s.cancel(errInternal); s.close() }, slog.String("session", s.id), slog.String("volume", s.volume))
		defer leave()
		defer closed()
		s.serve(channel, requests, all)
		ssh.DiscardRequests(requests) // until the client has closed the channel: before, it may fill its window
	})
}

// openChannel counts a channel. Each may hold the data of a whole window, so that all but the first
// one of a connection count as sessions.
func (s *session) openChannel() (leave func(), err error) {
	n := s.channels.Add(1)
	free := func() {}
	switch {
	case n > maxChannels:
		err = errSessions
	case n > 1:
		free, err = s.server.limits.sessions.Enter(s.ctx, limit.Claim{Tenant: s.tenant})
	}
	leave = func() {
		free()
		s.channels.Add(-1)
	}
	if err != nil {
		leave()
	}
	return leave, err
}

// serve waits for the request of the subsystem sftp, and serves it. Anything else, such
// as a shell or a command, ends the channel.
func (s *session) serve(channel ssh.Channel, requests <-chan *ssh.Request, all *sync.WaitGroup) {
	defer channel.Close()
	for r := range requests {
		var subsystem struct{ Name string }
		switch {
		case r.Type == "subsystem" && ssh.Unmarshal(r.Payload, &subsystem) == nil && subsystem.Name == "sftp":
			_ = r.Reply(true, nil)
			all.Go(func() { ssh.DiscardRequests(requests) })
			all.Go(func() { _, _ = io.Copy(io.Discard, channel.Stderr()) })
			s.serveFiles(metered{channel, s.meter})
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{}))
			return
		case r.Type == "subsystem", r.Type == "exec", r.Type == "shell":
			_ = r.Reply(false, nil)
			return
		default:
			_ = r.Reply(false, nil)
		}
	}
}

func (s *session) serveFiles(channel io.ReadWriteCloser) {
	g := newGuard(channel, s)
	h := &handlers{s, g}
	err := sftp.NewRequestServer(g, sftp.Handlers{FileGet: h, FilePut: h, FileCmd: h, FileList: h},
		sftp.WithRSMaxTxPacket(maxRead)).Serve()
	if err != nil && !errors.Is(err, io.EOF) && s.ctx.Err() == nil {
		s.server.log.Debug("sftp: a channel ended", slog.String("session", s.id), slog.Any("err", err))
	}
}

// files returns the context of one operation on files. Those of a token that is limited to containers
// respect the denied_files of the containers of its volume.
func (s *session) files() context.Context {
	if !s.principal.Restricted() {
		return s.ctx
	}
	return v1.WithDenied(s.ctx, store.DeniedFiles(s.server.deps.Store.Read(), s.volume))
}
