package server

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	v1 "berth/api/v1"
	"berth/store"
)

// onVolumeOf is the check of a session on the files of a volume.
func onVolumeOf(id string) func(*store.Tx, auth.Principal) error {
	return func(tx *store.Tx, p auth.Principal) error {
		can, err := p.CanAccessVolume(tx, id)
		if err == nil && !can {
			err = v1.ErrVolumeNotFound
		}
		return err
	}
}

// onContainer is the check of a session on one creation of a container.
func onContainer(m v1.Meta) func(*store.Tx, auth.Principal) error {
	return func(tx *store.Tx, _ auth.Principal) error {
		o, err := store.Containers.Get(tx, m.ID)
		if errors.Is(err, store.ErrNotFound) || err == nil && o.Meta.UID != m.UID {
			return v1.ErrContainerNotFound
		}
		return err
	}
}

// beginOperation begins the session of a file operation. Its context ends with
// the session, for the session's reason. Whatever still comes from the client is
// cut off then, unless the server shuts down: then it has a moment.
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
// has returned. Done has to be called when it is sent, or cannot be.
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

// refusalOf is the answer to a request whose session could not begin.
func refusalOf(err error) error {
	if errors.Is(err, auth.ErrShutdown) {
		return errUnavailable
	}
	return err
}
