package server

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	v1 "berth/api/v1"
	"berth/store"
)

// onVolumeOf returns the check of a session that uses the files of a volume.
func onVolumeOf(id string) func(*store.Tx, auth.Principal) error {
	return func(tx *store.Tx, p auth.Principal) error {
		can, err := p.CanAccessVolume(tx, id)
		if err == nil && !can {
			err = v1.ErrVolumeNotFound
		}
		return err
	}
}

// onContainer returns the check of a session that uses a container: the session
// ends when the container is deleted, even if another one takes its id.
func onContainer(m v1.Meta) func(*store.Tx, auth.Principal) error {
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
func beginOperation(s *Server, c *fiber.Ctx, ctx context.Context, volume string) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	upload, _ := c.Context().Conn().(*conn)
	if !c.Request().IsBodyStream() {
		upload = nil
	}
	done, err := s.sessions.Begin(&auth.Session{
		Principal: callerOf(c),
		Check:     onVolumeOf(volume),
		End: func(reason error) {
			cancel(reason)
			if upload != nil && !errors.Is(reason, auth.ErrShutdown) {
				upload.abort()
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
func beginDownload(s *Server, c *fiber.Ctx, check func(*store.Tx, auth.Principal) error) (done func(), err error) {
	own, _ := c.Context().Conn().(*conn)
	p := callerOf(c)
	end, err := s.sessions.Begin(&auth.Session{Principal: p, Check: check, End: func(reason error) {
		if own != nil && !errors.Is(reason, auth.ErrShutdown) {
			own.abort()
		}
	}})
	if err != nil {
		return nil, refusalOf(err)
	}
	c.Locals(sessionKey, true)
	return func() {
		end()
		forget(s, p)
	}, nil
}

// refusalOf returns the client's error for a session that could not begin.
func refusalOf(err error) error {
	if errors.Is(err, auth.ErrShutdown) {
		return errUnavailable
	}
	return err
}
