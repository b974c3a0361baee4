package client

import (
	"context"
	"net/http"
	"net/url"

	v1 "berth/api/v1"
)

// The types of downloads are those of the API.

type (
	// PullRequest is v1.PullRequest.
	PullRequest = v1.PullRequest
	// Pull is v1.PullView.
	Pull = v1.PullView
)

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
