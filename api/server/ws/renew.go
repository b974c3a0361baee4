package ws

import (
	"errors"
	"math"
	"time"

	"berth/api/auth"
	"berth/api/stream"
	v1 "berth/api/v1"
)

const (
	warnBefore = time.Minute // the expiry of a token
	renewEvery = time.Second // at most, on one socket
)

var errRenewRate = v1.Errorf(v1.TooManySessions, "auth: wait a second between two tokens")

// renew replaces the socket's token by the one in a message, which is checked as at
// connect. After an error the socket stays open with its token.
func (r commandReader) renew(m clientMessage) (outgoing, error) {
	k := r.socket
	secret, err := m.data()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if now.Sub(k.renewed) < renewEvery {
		return nil, errRenewRate
	}
	k.renewed = now
	p, err := k.authenticate(secret)
	if err != nil {
		return nil, err
	}
	if err := auth.Spend(k.sockets.Store, p); err != nil {
		return nil, err
	}
	next := newSession(k, p)
	done, err := k.sockets.Sessions.Replace(k.session, next)
	if err != nil {
		k.sockets.Forget(p)
	}
	if errors.Is(err, auth.ErrEnded) {
		return nil, nil // the socket is being closed
	}
	if err != nil {
		return nil, err
	}
	old := k.caller
	k.caller, k.session, k.done = p, next, done
	k.sockets.Forget(old)
	k.request.Actor = actorOf(p, k.request.Actor)
	return func() error {
		k.viewer, k.expires = p, p.ExpiresAt
		k.expiry.Reset(warnIn(k.expires))
		return k.send(tokenMessage("token renewed", p.ExpiresAt))
	}, nil
}

// authenticate returns the principal of a token that may open this socket.
func (k *socket) authenticate(secret string) (auth.Principal, error) {
	p, err := auth.Authenticate(k.sockets.Store, k.sockets.Settings.Current().Authorization, secret)
	switch {
	case errors.Is(err, auth.ErrUnauthorized):
		k.sockets.WrongToken(k.request.Actor.Address)
		return p, err
	case err != nil:
		return p, err
	case !p.HasScope(v1.ScopeRead), k.container == "" && p.Restricted():
		return p, auth.ErrScope
	case k.container != "" && !p.CanAccess(k.container):
		return p, v1.ErrContainerNotFound
	}
	return p, nil
}

// actorOf returns the actor of a socket whose token is now that of p. Only an
// administrator acts on behalf of somebody else.
func actorOf(p auth.Principal, was v1.Actor) v1.Actor {
	actor := p.Actor(was.Via, was.Address)
	if p.HasScope(v1.ScopeAdmin) {
		actor.OnBehalfOf = was.OnBehalfOf
	}
	return actor
}

// warnIn returns when to warn of an expiry: a minute before, and for a token that
// has less than two minutes left after half of that.
func warnIn(expires time.Time) time.Duration {
	if expires.IsZero() {
		return math.MaxInt64
	}
	left := max(0, time.Until(expires))
	return max(left-warnBefore, left/2)
}

// warn sends the message that the token will expire. Only the goroutine that writes
// calls it.
func (k *socket) warn() error {
	return k.send(tokenMessage(`token is about to expire: renew it with {"event":"auth","data":"<token>"}`, k.expires))
}

// tokenMessage returns the JSON of a message about the socket's token. It has no
// expires_at if the token does not expire.
func tokenMessage(text string, expires time.Time) []byte {
	message := stream.Encode(v1.EventMessage, "", []byte(text), time.Now(), 0)
	if expires.IsZero() {
		return message
	}
	return stream.AddExpiry(message, expires)
}
