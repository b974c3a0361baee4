package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"

	"berth/runtime"
)

// ImageID returns the id of the image that ref names on the host; empty if there is none.
func (e *Engine) ImageID(ctx context.Context, ref string) (id string, err error) {
	err = e.calls.do(ctx, opImage, ref, func(ctx context.Context) error {
		found, err := e.conn.client().ImageInspect(ctx, ref)
		if err == nil && found.ID == "" {
			err = fmt.Errorf("%w: its answer has no image id", runtime.ErrUnavailable)
		}
		id = found.ID
		return err
	})
	return id, ignore(err, runtime.ErrImageNotFound)
}

// Foreign returns the platforms of an image and of the machine if the machine cannot run the
// image by itself; empty if it can, or if the image is gone. An emulator may run it all the same.
func (e *Engine) Foreign(ctx context.Context, imageID string) (text string, err error) {
	err = e.calls.do(ctx, opImage, imageID, func(ctx context.Context) error {
		found, err := e.conn.client().ImageInspect(ctx, imageID)
		if err != nil {
			return err
		}
		host, err := e.conn.client().ServerVersion(ctx)
		if err == nil && !runs(host.Os, host.Arch, found.Os, found.Architecture) {
			text = fmt.Sprintf("%s/%s, and this machine is %s/%s", found.Os, found.Architecture, host.Os, host.Arch)
		}
		return err
	})
	return text, ignore(err, runtime.ErrImageNotFound)
}

// runs reports whether a machine runs the programs of an image, as far as both are known.
func runs(hostOS, hostArch, imageOS, imageArch string) bool {
	if hostOS == "" || hostArch == "" || imageOS == "" || imageArch == "" {
		return true
	}
	narrow := map[string]string{"amd64": "386", "arm64": "arm"}
	return hostOS == imageOS && (hostArch == imageArch || narrow[hostArch] == imageArch)
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
	err = e.calls.do(ctx, opImage, ref, func(ctx context.Context) error {
		cli := e.conn.client()
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

// Pull pulls an image and calls progress with its progress. It has no deadline as
// long as it makes progress. ctx must outlive the request that caused the pull:
// the engine stops a pull when its client disconnects.
func (e *Engine) Pull(ctx context.Context, ref string, auth runtime.Auth, progress func(runtime.Progress)) error {
	options := image.PullOptions{}
	if auth != (runtime.Auth{}) {
		encoded, err := credentials(ref, auth)
		if err != nil {
			return fmt.Errorf("pull %s: %w", ref, err)
		}
		options.RegistryAuth = encoded
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(e.cfg.StallLimit, func() { cancel(runtime.ErrStalled) })
	defer stall.Stop()
	err := e.calls.do(ctx, opPull, ref, func(ctx context.Context) error {
		return e.pull(ctx, ref, options, func(p runtime.Progress) {
			stall.Reset(e.cfg.StallLimit)
			if progress != nil {
				progress(p)
			}
		})
	})
	if err != nil && errors.Is(context.Cause(ctx), runtime.ErrStalled) {
		return fmt.Errorf("pull %s: %w for %s", ref, runtime.ErrStalled, e.cfg.StallLimit)
	}
	return err
}

// credentials encodes auth for the engine, which sends it to the registry of ref.
// It returns ErrInvalid if that is not the registry of auth.
func credentials(ref string, auth runtime.Auth) (string, error) {
	name, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", fmt.Errorf("%w: %w", runtime.ErrInvalid, err)
	}
	if from := reference.Domain(name); !strings.EqualFold(from, auth.Host) {
		return "", fmt.Errorf("%w: the image is from %s, and the credentials are for %s", runtime.ErrInvalid, from, auth.Host)
	}
	return registry.EncodeAuthConfig(registry.AuthConfig{Username: auth.Username, Password: auth.Password, ServerAddress: auth.Host})
}

func (e *Engine) pull(ctx context.Context, ref string, options image.PullOptions, moved func(runtime.Progress)) error {
	body, err := e.conn.client().ImagePull(ctx, ref, options)
	if err != nil {
		return pullError(ref, err)
	}
	defer body.Close()
	return pullError(ref, readPull(body, moved))
}

// pullMessage is a message in the engine's answer to a pull.
type pullMessage struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Error  string `json:"error"`
	Detail struct {
		Current int64 `json:"current"`
		Total   int64 `json:"total"`
	} `json:"progressDetail"`
}

// readPull reads the stream to its end, when the pull is complete.
func readPull(body io.Reader, moved func(runtime.Progress)) error {
	decoder, layers := json.NewDecoder(body), layers{}
	for {
		var m pullMessage
		switch err := decoder.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
		case m.Error != "":
			return errors.New(m.Error)
		}
		if layers.record(m) {
			moved(layers.progress())
		}
	}
}

// layers holds the progress of each layer of an image, by layer id.
type layers map[string]layer

type layer struct {
	status         string
	current, total int64
}

// record updates the layers and reports whether m shows progress. The engine's
// pause before a retry is no progress.
func (l layers) record(m pullMessage) bool {
	if strings.HasPrefix(m.Status, "Retrying") {
		return false
	}
	if m.ID == "" || strings.HasPrefix(m.Status, "Pulling from") {
		return true
	}
	now := l[m.ID]
	old := now
	now.status = m.Status
	switch m.Status {
	case "Downloading":
		now.current, now.total = m.Detail.Current, m.Detail.Total
	case "Verifying Checksum", "Download complete":
		now.current = now.total
	case "Extracting": // its numbers count the same bytes a second time
		l[m.ID] = now
		return true
	}
	l[m.ID] = now
	return now != old
}

func (l layers) progress() (p runtime.Progress) {
	for _, one := range l {
		p.Layers++
		if one.status == "Pull complete" || one.status == "Already exists" {
			p.Done++
		}
		p.Current += one.current
		p.Total += one.total
	}
	return p
}
