package client

import (
	"context"
	"net/http"
	"net/url"

	v1 "berth/api/v1"
)

// PullRequest describes a download of a URL into a volume.
type PullRequest struct {
	URL      string `json:"url"`                // http or https
	Path     string `json:"path"`               // of the file in the volume
	Checksum string `json:"checksum,omitempty"` // sha256:<hex>; empty: none
}

// Pull is a download of a URL into a volume.
type Pull struct {
	PullID   string       `json:"pull_id"`
	URL      string       `json:"url"`
	Path     string       `json:"path"`
	State    v1.PullState `json:"state"`
	Progress struct {
		Bytes int64  `json:"bytes"`
		Total *int64 `json:"total"` // nil: unknown
	} `json:"progress"`
	Message string `json:"message"` // why it failed
}

// Pull begins a download in the background and returns its id.
func (s Files) Pull(ctx context.Context, volume string, r PullRequest) (id string, err error) {
	var body struct {
		PullID string `json:"pull_id"`
	}
	err = s.c.Call(ctx, http.MethodPost, volumePath(volume)+"/pull", r, &body)
	return body.PullID, err
}

// Pulls returns the downloads into a volume, the newest first.
func (s Files) Pulls(ctx context.Context, volume string) ([]Pull, error) {
	var body struct {
		Pulls []Pull `json:"pulls"`
	}
	err := s.c.get(ctx, volumePath(volume)+"/pulls", &body)
	return body.Pulls, err
}

// CancelPull cancels a download.
func (s Files) CancelPull(ctx context.Context, volume, id string) error {
	return s.c.Call(ctx, http.MethodDelete, volumePath(volume)+"/pulls/"+url.PathEscape(id), nil, nil)
}
