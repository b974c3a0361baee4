package server

import (
	"errors"

	"github.com/fasthttp/websocket"

	"berth/api/auth"
	v1 "berth/api/v1"
	"berth/store"
)

// begin registers the socket as a session. The session calls end when the token or
// the container is no longer valid.
func (k *socket) begin() (done func(), err error) {
	listens := k.container
	if listens == "" {
		listens = wholeNode
	}
	end, err := k.server.sessions.Begin(&auth.Session{Principal: k.caller, Container: listens, Check: k.check, End: k.end})
	if err != nil {
		return nil, err
	}
	k.server.metrics.sockets.Inc()
	return func() {
		end()
		k.server.metrics.sockets.Dec()
	}, nil
}

// wholeNode is the container of a node's socket where sessions are counted. It is
// not a valid internal_id.
const wholeNode = "*"

// check returns auth.ErrGone if the socket's container is deleted, even if another
// one has taken its internal_id.
func (k *socket) check(tx *store.Tx, _ auth.Principal) error {
	if k.container == "" {
		return nil
	}
	o, err := store.Containers.Get(tx, k.container)
	if errors.Is(err, store.ErrNotFound) || err == nil && o.Meta.UID != k.uid {
		return auth.ErrGone
	}
	return err
}

// end stops the socket with the close code and text for the end of its session.
func (k *socket) end(reason error) {
	var refusal *v1.Error
	switch {
	case errors.Is(reason, auth.ErrExpired):
		k.stop(websocket.ClosePolicyViolation, "token has expired")
	case errors.Is(reason, auth.ErrUnauthorized):
		k.stop(websocket.ClosePolicyViolation, "token is revoked")
	case errors.Is(reason, auth.ErrGone):
		k.stop(websocket.CloseNormalClosure, "container is deleted")
	case errors.Is(reason, auth.ErrShutdown):
		k.stop(websocket.CloseGoingAway, "shutting down")
	case errors.As(reason, &refusal):
		k.stop(websocket.CloseTryAgainLater, refusal.Message)
	}
	k.stop(websocket.CloseInternalServerErr, "internal error")
}
