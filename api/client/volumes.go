package client

import (
	"context"
	"net/http"
	"net/url"
)

// Volume is a volume.
type Volume struct {
	VolumeID  string   `json:"volume_id"`
	Path      string   `json:"path"`       // its directory on the daemon's host
	Size      int64    `json:"size"`       // bytes, as last measured
	SizeLimit int64    `json:"size_limit"` // bytes; 0: none
	CreatedAt int64    `json:"created_at"` // Unix seconds
	UsedBy    []string `json:"used_by"`    // the containers that use it
}

// Volumes are the calls for volumes.
type Volumes struct{ c *Client }

func volumePath(id string) string { return "/volumes/" + url.PathEscape(id) }

// List returns all volumes.
func (s Volumes) List(ctx context.Context) ([]Volume, error) {
	var body struct {
		Volumes []Volume `json:"volumes"`
	}
	err := s.c.get(ctx, "/volumes", &body)
	return body.Volumes, err
}

// Get returns a volume. id is its UUID or the first 8 characters of it.
func (s Volumes) Get(ctx context.Context, id string) (v Volume, err error) {
	err = s.c.get(ctx, volumePath(id), &v)
	return v, err
}

// Create creates a volume. The limit is in bytes; 0 is none. Only VolumeID and Path
// of the result are set.
func (s Volumes) Create(ctx context.Context, sizeLimit int64) (v Volume, err error) {
	body := struct {
		SizeLimit int64 `json:"size_limit,omitempty"`
	}{sizeLimit}
	err = s.c.Call(ctx, http.MethodPost, "/volumes", body, &v)
	return v, err
}

// Delete deletes a volume that no container uses, with its files.
func (s Volumes) Delete(ctx context.Context, id string) error {
	return s.c.Call(ctx, http.MethodDelete, volumePath(id), nil, nil)
}
