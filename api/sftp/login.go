package sftp

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/crypto/ssh"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/store"
)

// login is the login of one connection. Its methods are the callbacks of package ssh,
// which calls one at a time.
type login struct {
	server  *Server
	ctx     context.Context // ends with the connection
	address string
	keys    bool // a key was refused, which counts once: clients offer all they have
	session *session
}

// access is what a user of a token may reach.
type access struct {
	volume    string
	container string // internal_id, if the user named one
	readOnly  bool
}

// Refusals of a login whose reason the client may know.
var (
	errScope    = &ssh.BannerError{Err: auth.ErrScope, Message: "The token has neither the scope files nor read.\r\n"}
	errSessions = &ssh.BannerError{Err: errors.New("too many sessions"),
		Message: "Too many SFTP sessions are open: close one, or try again later.\r\n"}
)

var errRefused = errors.New("wrong user, token or key")

// password logs in with a token.
func (l *login) password(meta ssh.ConnMetadata, secret []byte) (*ssh.Permissions, error) {
	p, err := auth.Authenticate(l.server.deps.Store, l.server.deps.Settings.Current().Authorization, string(secret))
	if err == nil {
		err = l.admit(meta.User(), p)
	}
	return l.answer(meta.User(), err)
}

// publicKey reports whether a key may log in. The client has not proved that it owns it.
func (l *login) publicKey(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	_, err := l.principalOf(meta.User(), key)
	if err == nil {
		return &ssh.Permissions{}, nil
	}
	if l.keys && errors.Is(err, auth.ErrUnauthorized) {
		l.wait()
		return nil, errRefused
	}
	l.keys = true
	return l.answer(meta.User(), err)
}

// verified logs in with a key that the client owns.
func (l *login) verified(meta ssh.ConnMetadata, key ssh.PublicKey, _ *ssh.Permissions, _ string) (*ssh.Permissions, error) {
	p, err := l.principalOf(meta.User(), key)
	if err == nil {
		err = l.admit(meta.User(), p)
	}
	return l.answer(meta.User(), err)
}

// principalOf returns the principal of the token with a key that allows most: writing
// before reading, then the latest expiry.
func (l *login) principalOf(user string, key ssh.PublicKey) (best auth.Principal, err error) {
	d := l.server.deps
	list, err := auth.AuthenticateKey(d.Store, d.Settings.Current().Authorization, auth.KeyText(key))
	if err != nil {
		return best, err
	}
	err = auth.ErrUnauthorized
	for _, p := range list {
		reach, refused := l.reach(user, p)
		if refused != nil {
			continue
		}
		writes, better := best.HasScope(v1.ScopeFiles), !reach.readOnly
		if err != nil || better && !writes || better == writes && p.ExpiresAt.After(best.ExpiresAt) {
			best, err = p, nil
		}
	}
	return best, err
}

// reach returns what a principal reaches as a user. It returns auth.ErrUnauthorized for
// an unknown user, and for one that the principal may not see.
func (l *login) reach(user string, p auth.Principal) (a access, err error) {
	tx := l.server.deps.Store.Read()
	v, err := intent.FindVolume(tx, user)
	a.volume = v.Meta.ID
	if errors.Is(err, v1.ErrVolumeNotFound) {
		var c v1.Container
		c, err = intent.FindContainer(tx, user)
		a.volume, a.container = c.Spec.VolumeID, c.Meta.ID
	}
	if err == nil {
		err = onVolume(tx, p, a.volume)
	}
	var refusal *v1.Error
	if errors.As(err, &refusal) {
		return a, auth.ErrUnauthorized
	}
	a.readOnly = !p.HasScope(v1.ScopeFiles)
	if err == nil && a.readOnly && !p.HasScope(v1.ScopeRead) {
		return a, errScope
	}
	return a, err
}

// onVolume returns v1.ErrVolumeNotFound if a volume is deleted, or not one that a
// principal may access.
func onVolume(tx *store.Tx, p auth.Principal, id string) error {
	if _, err := intent.FindVolume(tx, id); err != nil {
		return err
	}
	return p.CheckVolume(tx, id)
}

// admit creates the session. The login is the use of a single-use token.
func (l *login) admit(user string, p auth.Principal) error {
	reach, err := l.reach(user, p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(l.ctx, l.server.login)
	defer cancel()
	check := func() error { // a session that begins is verified again, see auth.Sessions
		_, err := l.reach(user, p)
		return err
	}
	if err := l.server.limits.changes.Wait(ctx, tenantOf(p, reach.volume), check); err != nil { // a session is an entry of the audit log
		return errSessions
	}
	leave, err := l.server.limits.sessions.Enter(ctx, limit.Claim{Tenant: tenantOf(p, reach.volume)})
	if err != nil {
		return errSessions
	}
	if err = auth.Spend(l.server.deps.Store, p); err == nil {
		l.session, err = newSession(l.server, p, reach, l.address, leave)
	}
	if err != nil {
		leave()
	}
	return err
}

// answer records the result of a login, and delays it if the address has failed often.
func (l *login) answer(user string, err error) (*ssh.Permissions, error) {
	s := l.server
	result := loginAccepted
	switch {
	case err == nil:
	case errors.Is(err, auth.ErrUnauthorized):
		result, err = loginRefused, errRefused
		s.limits.wrong.Take(limit.Network(l.address), limit.WrongLogin)
		if s.limits.lines.Take(limit.Network(l.address), 1) == 0 {
			s.log.Warn("sftp login failed", slog.String("address", l.address), slog.String("user", v1.MaskTokens(user[:min(len(user), 64)])))
		}
	case errors.Is(err, auth.ErrScope):
		result = loginDenied
	case errors.Is(err, errSessions.Err):
		result = loginLimited
	default:
		result = loginUnstored
		s.log.Error("sftp login could not be checked", slog.String("address", l.address), slog.Any("err", err))
	}
	s.metrics.logins.WithLabelValues(result).Inc()
	l.wait()
	if err != nil {
		return nil, err
	}
	return &ssh.Permissions{}, nil
}

// wait delays an answer if the address has failed often. It locks nobody out: a valid login
// waits as long as any other.
func (l *login) wait() {
	if l.server.limits.wrong.Left(limit.Network(l.address), limit.WrongLogin) > 0 {
		pause(l.ctx, l.server.delay)
	}
}

// tenantOf returns whose limits a session on a volume uses, see package limit.
func tenantOf(p auth.Principal, volume string) string {
	if p.Restricted() {
		return "volume " + volume
	}
	return p.Tenant()
}

// end ends the session, if the login had one.
func (l *login) end() {
	if l.session != nil {
		l.session.end()
	}
}
