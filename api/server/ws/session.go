package ws

import (
	"errors"

	"berth/api/auth"
	"berth/store"
)

// begin registers the socket as a session. The session calls end when the token or
// the container is no longer valid.
func (k *socket) begin() (err error) {
	listens := k.container
	if listens == "" {
		listens = wholeNode
	}
	k.done, err = k.sockets.Sessions.Begin(&auth.Session{Principal: k.caller, Container: listens, Check: k.check, End: k.end})
	if err != nil {
		return err
	}
	k.sockets.open.Inc()
	return nil
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
	if errors.Is(err, store.ErrNotFound) || err == nil && o.Meta.UID != k.request.Container.UID {
		return auth.ErrGone
	}
	return err
}
