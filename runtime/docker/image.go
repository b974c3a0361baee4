package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
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

// RemoveImage removes the name ref of an image, and the image with it if it has no other.
// It does nothing if the image is not there, or has another name. It returns
// runtime.ErrImageInUse if a container was created from it.
func (e *Engine) RemoveImage(ctx context.Context, id, ref string) error {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return err
	}
	own := reference.FamiliarString(reference.TagNameOnly(named))
	err = e.core.calls.do(ctx, opImage, ref, func(ctx context.Context) error {
		cli := e.core.conn.client()
		found, err := cli.ImageInspect(ctx, id)
		switch {
		case err != nil:
			return err
		case slices.Contains(found.RepoTags, own):
			_, err = cli.ImageRemove(ctx, own, image.RemoveOptions{PruneChildren: true})
		case len(found.RepoTags) == 0:
			_, err = cli.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true})
		}
		if cerrdefs.IsConflict(err) {
			return classifiedError{runtime.ErrImageInUse, err}
		}
		return err
	})
	return ignore(err, runtime.ErrImageNotFound)
}
