package server

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/limit"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// auditor writes the entries of mutating requests to the audit log.
type auditor struct {
	store   *store.Store
	pace    *limit.Rate
	keys    *idempotency
	entries *prometheus.CounterVec
	refused *limit.Rate // entries about refused requests
}

func newAuditor(db *store.Store, r prometheus.Registerer) auditor {
	a := auditor{store: db, refused: limit.NewRate(limit.RefusedEntries()), pace: limit.NewRate(limit.Changes()),
		keys: newIdempotency(db, r), entries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_audit_entries_total",
			Help: "Requests recorded in the audit log, by result: accepted, refused (4xx), failed (5xx), or unrecorded if the store could not " +
				"be written.",
		}, []string{"result"})}
	for _, result := range []string{accepted, refusedResult, failed, unrecorded} {
		a.entries.WithLabelValues(result)
	}
	r.MustRegister(a.entries)
	return a
}

// The values of the label result.
const (
	accepted      = "accepted"
	refusedResult = "refused"
	failed        = "failed"
	unrecorded    = "unrecorded"
)

func resultOf(status int) string {
	switch {
	case status >= 500:
		return failed
	case status >= 400:
		return refusedResult
	}
	return accepted
}

// begin gives a request that may change something the entry that end stores, and the check of its
// updates. It waits if its tenant has sent too many.
func (a auditor) begin(c *call, r route) error {
	switch c.Method() {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil
	}
	if dry, err := edge.QueryBool(c.Ctx, "dry_run"); err == nil && dry && r.is(dryRuns) {
		edge.CallOf(c.Ctx).DryRun = true
		return nil
	}
	var err error
	if a.pace.Take(c.caller.Tenant(), 1) > 0 {
		ctx, cancel := edge.Context(c.Ctx)
		defer cancel()
		if err = a.pace.Wait(ctx, c.caller.Tenant(), c.checkIn(a.store)); ctx.Err() != nil {
			return edge.ErrUnavailable // the client is gone, or the server shuts down
		}
	}
	c.request = store.NewRequest(a.store, c.actor(), a.describe(c.Ctx, r))
	c.request.Audit.Tenant = c.caller.Tenant()
	c.request.Check = c.recheck
	return err
}

// describe returns what the URL of a request says about it.
func (a auditor) describe(c *fiber.Ctx, r route) v1.Audit {
	d := v1.Audit{RequestID: edge.CallOf(c).ID, Action: r.action}
	if r.path == "" { // no route has its path and method
		d.Action, d.Object = "request."+strings.ToLower(c.Method()), v1.MaskTokens(c.Path())
		return d
	}
	d.Container, d.Volume = c.Params("id"), fullVolume(a.store, strings.ToLower(c.Params("volume")))
	d.Object = d.Container + d.Volume + v1.MaskTokens(c.Params("token")) + strings.ToLower(c.Params("backup")) +
		c.Params("transfer") + c.Params("arrival")
	if name := c.Params("schedule"); name != "" {
		d.Object += "/" + name
	}
	if ip := c.Params("ip"); ip != "" {
		d.Object = portName(ip, c.Params("port"), c.Query("protocol"))
	}
	return d
}

// fullVolume returns the id of the volume that a text names, or the text if there is none: entries
// are found by the whole id.
func fullVolume(db *store.Store, text string) string {
	if text == "" {
		return ""
	}
	if v, err := intent.FindVolume(db.Read(), text); err == nil {
		return v.Meta.ID
	}
	return text
}

// portName returns a port, or several, as the object of an entry.
func portName(ip, port, protocol string) string {
	name := ip + ":" + port
	if strings.Contains(ip, ":") {
		name = "[" + ip + "]:" + port
	}
	if protocol != "" {
		name += "/" + protocol
	}
	return name
}

// end stores the outcome of a request in its entry, before the answer is sent.
func (a auditor) end(c *call) error {
	r := c.request
	if r == nil {
		return nil
	}
	if r.Outcome != nil {
		defer a.keys.release(r.Outcome)
	}
	outcome := final(c, r)
	if outcome != nil {
		a.keys.stored(*outcome)
	}
	return a.finish(r, c.caller, c.Response().StatusCode(), outcome, c.Method() == http.MethodDelete)
}

// finish stores the status of a request in its entry, and its outcome. frees reports whether the
// request may have freed disk space: then it is stored on a full disk too.
func (a auditor) finish(r *store.Request, caller auth.Principal, status int, o *store.Outcome, frees bool) error {
	if status >= http.StatusBadRequest {
		a.pace.Count(caller.Tenant(), limit.RefusedChange-1)
		a.list(r, caller.Tenant())
	}
	finish := r.Finish
	if frees {
		finish = r.MustFinish
	}
	if err := finish(status, o); err != nil {
		a.entries.WithLabelValues(unrecorded).Inc()
		return known(err)
	}
	a.entries.WithLabelValues(resultOf(status)).Inc()
	return nil
}

// list has a refused request of a tenant no entry if there were too many like it. The next entry counts
// it.
func (a auditor) list(r *store.Request, tenant string) {
	if tenant == "" || r.Stored() {
		return
	}
	left, listed := a.refused.List(tenant + " " + r.Audit.Action)
	if r.Audit.Skipped = left; !listed {
		r.Audit.Action = ""
	}
}

// finishMessage stores the outcome of a socket's message in its entry. It returns err,
// or why the entry could not be stored.
func (a auditor) finishMessage(r *store.Request, caller auth.Principal, err error) error {
	status := http.StatusOK
	if err != nil {
		refused, _ := edge.Refusal(known(err))
		status = edge.Status(refused)
	}
	return cmp.Or(a.finish(r, caller, status, nil, false), err)
}

// writer returns the store as a request changes it.
func (c *call) writer(db *store.Store) *store.Request {
	if c.request != nil {
		return c.request
	}
	return store.NewRequest(db, c.actor(), v1.Audit{})
}

// describe completes the description of a request, if it has an entry.
func (c *call) describe(change func(*v1.Audit)) {
	if c.request != nil {
		change(&c.request.Audit)
	}
}

// nameFile records the path of the file that a request changes. Several are
// separated by arrows.
func (c *call) nameFile(paths ...string) {
	c.describe(func(a *v1.Audit) { a.Path = v1.MaskTokens(strings.Join(paths, " -> ")) })
}

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
	tx := s.store.Read()
	if v, err := intent.FindVolume(tx, filter.Volume); err == nil { // of a deleted one only the whole id is known
		filter.Volume = v.Meta.ID
	}
	if r.backward {
		body.Entries, err = store.ReadLastAudit(tx, r.limit, filter)
	} else {
		body.Entries, err = store.ReadAudit(tx, r.since, r.limit, filter)
	}
	return body, err
}
