package server

import (
	"context"
	"errors"
	"net/http"

	"berth/api/auth"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// sessions begins the sessions of file operations and downloads.
type sessions struct {
	all    *auth.Sessions
	access access
}

// check is the check of a session, see auth.Session.
type check func(*store.Tx, auth.Principal) error

// onVolumeOf returns the check of a session that uses the files of a volume.
func onVolumeOf(id string) check {
	return func(tx *store.Tx, p auth.Principal) error { return p.CheckVolume(tx, id) }
}

// onChangeOf returns the check of a session that changes the files of a volume: it ends
// when a restore of the volume is requested.
func onChangeOf(id string) check {
	check := onVolumeOf(id)
	return func(tx *store.Tx, p auth.Principal) error {
		if err := check(tx, p); err != nil {
			return err
		}
		return v1.ReservedBy(store.Restoring(tx, id))
	}
}

// onContainer returns the check of a session that uses a container: the session
// ends when the container is deleted, even if another one takes its id.
func onContainer(m v1.Meta) check {
	return func(tx *store.Tx, _ auth.Principal) error {
		o, err := store.Containers.Get(tx, m.ID)
		if errors.Is(err, store.ErrNotFound) || err == nil && o.Meta.UID != m.UID {
			return v1.ErrContainerNotFound
		}
		return err
	}
}

// beginOperation begins the session of a file operation. The returned context
// ends with the session, and its cause is the reason. The connection of an upload
// is closed then too, except at shutdown, when it may finish within the timeout.
func (s sessions) beginOperation(ctx context.Context, c *call, volume string) (context.Context, func(), error) {
	check := onChangeOf(volume)
	if c.Method() == http.MethodGet || c.Method() == http.MethodHead {
		check = onVolumeOf(volume)
	}
	return s.begin(ctx, c, check)
}

// begin begins the session of an operation, which ends when its check fails.
func (s sessions) begin(ctx context.Context, c *call, check check) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	abort, upload := edge.Abort(c.Ctx), c.Request().IsBodyStream()
	done, err := s.all.Begin(&auth.Session{
		Principal: c.caller,
		Check:     check,
		End: func(reason error) {
			cancel(reason)
			if upload && !errors.Is(reason, auth.ErrShutdown) {
				abort()
			}
		},
	})
	if err != nil {
		cancel(err)
		return nil, nil, refusalOf(err)
	}
	return ctx, func() { done(); cancel(nil) }, nil
}

// beginDownload begins the session of an answer that is sent after its handler
// has returned. The caller must call done when the answer was sent or has failed.
func (s sessions) beginDownload(c *call, check check) (done func(), err error) {
	abort, p := edge.Abort(c.Ctx), c.caller
	end, err := s.all.Begin(&auth.Session{Principal: p, Check: check, End: func(reason error) {
		if !errors.Is(reason, auth.ErrShutdown) {
			abort()
		}
	}})
	if err != nil {
		return nil, refusalOf(err)
	}
	c.session = true
	return func() {
		end()
		s.access.forget(p)
	}, nil
}

// refusalOf returns the client's error for a session that could not begin.
func refusalOf(err error) error {
	if errors.Is(err, auth.ErrShutdown) {
		return edge.ErrUnavailable
	}
	return err
}
