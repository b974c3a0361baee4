package server

import (
	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// audit holds the handler that reads the audit log.
type audit struct{ store *store.Store }

type auditBody struct {
	Entries []v1.AuditEntry `json:"entries"`
}

// list answers with the entries after ?since=, or with the last ones, that match ?container=,
// ?volume= and ?actor=.
func (s audit) list(c *call) (auditBody, error) {
	r, err := rangeOf(c)
	if err != nil {
		return auditBody{}, err
	}
	filter := v1.AuditFilter{Container: c.Query("container"), Volume: c.Query("volume"), Actor: c.Query("actor")}
	var body auditBody
	err = s.store.View(func(tx *store.Tx) error {
		if v, err := intent.FindVolume(tx, filter.Volume); err == nil { // of a deleted one only the whole id is known
			filter.Volume = v.Meta.ID
		}
		if r.backward {
			body.Entries, err = store.ReadLastAudit(tx, r.limit, filter)
		} else {
			body.Entries, err = store.ReadAudit(tx, r.since, r.limit, filter)
		}
		return err
	})
	if err != nil {
		return auditBody{}, err
	}
	return body, nil
}
