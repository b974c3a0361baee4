package server

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// translate returns the error that package edge takes for an error of a handler.
func translate(_ *fiber.Ctx, err error) error { return ofStore(err) }

// ofStore wraps an error of the store in its v1.Error.
func ofStore(err error) error {
	var known *v1.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, store.ErrDiskFull):
		return errors.Join(v1.ErrStoreDiskFull, err)
	case errors.Is(err, store.ErrFailed), errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrTooBig):
		return errors.Join(v1.ErrStoreFailed, err)
	}
	return err
}

// refusal returns the text that a client receives for an error. The caller logs the
// error if log is true.
func refusal(err error) (text string, log bool) {
	refused, log := edge.Refusal(ofStore(err))
	return refused.Message, log
}
