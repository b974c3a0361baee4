package server

import (
	"errors"

	"github.com/fasthttp/websocket"

	"berth/api/auth"
	v1 "berth/api/v1"
	"berth/store"
)

// begin takes the socket in among the sessions, which end it.
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

// wholeNode stands for a container where sessions are counted. It is no internal_id.
const wholeNode = "*"

// check reports by auth.ErrGone that the socket's container is gone, or is
// another one of the same internal_id.
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

// end stops the socket for a reason of its session's.
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
