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
	return s.list(ctx, f, "since", strconv.FormatUint(since, 10), "limit", strconv.Itoa(limit))
}

// Last returns the last entries that f selects, at most limit, oldest first.
func (s Audit) Last(ctx context.Context, limit int, f v1.AuditFilter) ([]v1.AuditEntry, error) {
	return s.list(ctx, f, "last", strconv.Itoa(limit))
}

func (s Audit) list(ctx context.Context, f v1.AuditFilter, parameters ...string) ([]v1.AuditEntry, error) {
	var body struct {
		Entries []v1.AuditEntry `json:"entries"`
	}
	err := s.c.get(ctx, "/audit"+query(append(parameters, "container", f.Container, "volume", f.Volume, "actor", f.Actor)...), &body)
	return body.Entries, err
}
