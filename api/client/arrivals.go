package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	v1 "berth/api/v1"
)

// Transfers are the calls for transfers of containers to other nodes.
type Transfers struct{ c *Client }

// Start begins a transfer and returns its id.
func (s Transfers) Start(ctx context.Context, container string, r v1.TransferRequest) (id string, err error) {
	return made[string](ctx, s.c, containerPath(container)+"/transfer", r, "transfer_id")
}

// List returns all transfers, the newest first.
func (s Transfers) List(ctx context.Context) ([]v1.TransferView, error) {
	return list[[]v1.TransferView](ctx, s.c, "/transfers", "transfers")
}

// Get returns a transfer.
func (s Transfers) Get(ctx context.Context, id string) (t v1.TransferView, err error) {
	err = s.c.get(ctx, "/transfers/"+url.PathEscape(id), &t)
	return t, err
}

// Cancel ends a transfer. gone is whether the destination is gone for ever.
func (s Transfers) Cancel(ctx context.Context, id string, gone string) (t v1.TransferView, err error) {
	err = s.c.Call(ctx, http.MethodDelete, "/transfers/"+url.PathEscape(id)+query("destination_is_gone", gone), nil, &t)
	return t, err
}

// Arrivals are the calls of a node for the containers that it moves to another one.
type Arrivals struct{ c *Client }

func arrivalPath(id, rest string) string { return "/arrivals/" + url.PathEscape(id) + rest }

// List returns the arrivals, also those that have ended.
func (s Arrivals) List(ctx context.Context) ([]v1.ArrivalView, error) {
	return list[[]v1.ArrivalView](ctx, s.c, "/arrivals", "arrivals")
}

// Announce announces what will arrive, or changes the announcement.
func (s Arrivals) Announce(ctx context.Context, r v1.ArrivalRequest) (a v1.ArrivalView, err error) {
	err = s.c.Call(ctx, http.MethodPost, "/arrivals", r, &a)
	return a, err
}

// Tree opens the listing of what has arrived. The caller closes it.
func (s Arrivals) Tree(ctx context.Context, id string) (io.ReadCloser, error) {
	return Files(s).download(ctx, arrivalPath(id, "/tree"))
}

// Send sends entries. It reads content to its end, and may take any time.
func (s Arrivals) Send(ctx context.Context, id string, content io.Reader) error {
	_, err := Files(s).send(ctx, upload{path: arrivalPath(id, "/content"), content: content}, nil)
	return err
}

// SendBackup sends the archive of a backup from an offset on, as Send. It may end before the archive does. The destination looks for
// one in S3 in its bucket: archive is empty then.
func (s Arrivals) SendBackup(ctx context.Context, id, backup string, offset int64, archive io.Reader) error {
	path := arrivalPath(id, "/backups/"+url.PathEscape(backup))
	if offset > 0 {
		path += query("offset", strconv.FormatInt(offset, 10))
	}
	_, err := Files(s).send(ctx, upload{path: path, content: archive}, nil)
	return err
}

// Commit has the container be created, and returns how the arrival has ended.
func (s Arrivals) Commit(ctx context.Context, id string, r v1.CommitRequest) (a v1.ArrivalView, err error) {
	err = s.c.Call(ctx, http.MethodPost, arrivalPath(id, "/commit"), r, &a)
	return a, err
}

// Cancel removes what has arrived, and returns how the arrival has ended.
func (s Arrivals) Cancel(ctx context.Context, id string) (a v1.ArrivalView, err error) {
	err = s.c.Call(ctx, http.MethodDelete, arrivalPath(id, ""), nil, &a)
	return a, err
}
