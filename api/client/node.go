package client

import (
	"context"

	v1 "berth/api/v1"
)

// GetNode returns the host of a daemon, its engine, and the resources that are allocated there.
func GetNode(ctx context.Context, c *Client) (n v1.Node, err error) {
	err = c.get(ctx, "/node", &n)
	return n, err
}
