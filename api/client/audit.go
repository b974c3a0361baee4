package client

import (
	"context"
	"strconv"

	v1 "berth/api/v1"
)

// Audit are the calls for the audit log.
type Audit struct{ c *Client }

// List returns at most limit entries after seq since that f selects, oldest first.
func (s Audit) List(ctx context.Context, since uint64, limit int, f v1.AuditFilter) ([]v1.AuditEntry, error) {
	var body struct {
		Entries []v1.AuditEntry `json:"entries"`
	}
	err := s.c.get(ctx, "/audit"+query("since", strconv.FormatUint(since, 10), "limit", strconv.Itoa(limit),
		"container", f.Container, "volume", f.Volume, "actor", f.Actor), &body)
	return body.Entries, err
}
