package docker

import (
	"context"
	"errors"
	"fmt"

	"github.com/docker/docker/api/types/image"

	"berth/runtime"
)

// ImageID returns the id of the image that ref names on the host; empty if there is none.
// Concurrent calls for the same image share one request.
func (e *Engine) ImageID(ctx context.Context, ref string) (string, error) {
	id, err, _ := e.core.images.Do(ref, func() (any, error) {
		var found image.InspectResponse
		err := e.core.calls.do(ctx, opImage, ref, func(ctx context.Context) (err error) {
			found, err = e.core.conn.client().ImageInspect(ctx, ref)
			if err == nil && found.ID == "" {
				err = fmt.Errorf("%w: its answer has no image id", runtime.ErrUnavailable)
			}
			return err
		})
		return found.ID, err
	})
	if errors.Is(err, runtime.ErrImageNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return id.(string), nil
}
