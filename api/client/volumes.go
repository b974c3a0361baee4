package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	v1 "berth/api/v1"
)

// The types of volumes are those of the API.

type (
	// Volume is v1.VolumeView.
	Volume = v1.VolumeView
	// VolumeRequest is v1.VolumeSpec.
	VolumeRequest = v1.VolumeSpec
	// VolumeChange is v1.VolumeChange.
	VolumeChange = v1.VolumeChange
)

// Volumes are the calls for volumes.
type Volumes struct{ c *Client }

func volumePath(id string) string { return "/volumes/" + url.PathEscape(id) }

// List returns the volumes that have every one of these labels, each given as
// "name=value" or "name".
func (s Volumes) List(ctx context.Context, labels ...string) ([]Volume, error) {
	var body struct {
		Volumes []Volume `json:"volumes"`
	}
	path := "/volumes"
	if len(labels) > 0 {
		path += "?" + url.Values{"label": labels}.Encode()
	}
	err := s.c.get(ctx, path, &body)
	return body.Volumes, err
}

// All yields the volumes of List, sorted by id, and gets them page by page. It ends with
// the first error.
func (s Volumes) All(ctx context.Context, labels ...string) iter.Seq2[Volume, error] {
	return pages[Volume](ctx, s.c, "/volumes", "volumes", url.Values{"label": labels})
}

// Get returns a volume. id is its UUID or the first 8 characters of it.
func (s Volumes) Get(ctx context.Context, id string) (v Volume, err error) {
	err = s.c.get(ctx, volumePath(id), &v)
	return v, err
}

// Create creates a volume. Only VolumeID and Path of the result are set.
func (s Volumes) Create(ctx context.Context, r VolumeRequest) (v Volume, err error) {
	err = s.c.Call(ctx, http.MethodPost, "/volumes", r, &v)
	return v, err
}

// Change changes the name or the labels of a volume, and returns it.
func (s Volumes) Change(ctx context.Context, id string, change VolumeChange) (v Volume, err error) {
	err = s.c.Call(ctx, http.MethodPatch, volumePath(id), change, &v)
	return v, err
}

// Delete deletes a volume that no container uses, with its files.
func (s Volumes) Delete(ctx context.Context, id string) error {
	return s.c.Call(ctx, http.MethodDelete, volumePath(id), nil, nil)
}
