package server

import (
	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

type skippedBody struct {
	IP        string `json:"ip"`
	Port      int    `json:"port"`
	Protocol  string `json:"protocol"`
	Container string `json:"container"`
}

func (s ports) deleteBulk(c *fiber.Ctx) error {
	var body struct {
		Ports []struct {
			IP       string `json:"ip" wire:"required"`
			Port     int    `json:"port" wire:"required"`
			Protocol string `json:"protocol"`

			// Read-only fields of a pool entry, accepted and ignored.
			InUse     edge.Ignored `json:"in_use"`
			Container edge.Ignored `json:"container"`
			Firewall  edge.Ignored `json:"firewall"`
		} `json:"ports" wire:"required"`
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	refs := make([]intent.PortRef, len(body.Ports))
	for i, p := range body.Ports {
		refs[i] = intent.PortRef{IP: p.IP, Port: p.Port, Protocol: p.Protocol}
	}
	intent.CheckRefs(&f, refs)
	if err := f.Err(); err != nil {
		return err
	}
	deleted, skipped, err := intent.DeletePorts(requestOf(c, s.store), refs)
	if err != nil {
		return err
	}
	list := make([]skippedBody, len(skipped))
	for i, p := range skipped {
		list[i] = skippedBody{p.IP, p.Port, p.Protocol, p.Container}
	}
	return edge.OK(c, struct {
		messageBody
		DeletedCount int           `json:"deleted_count"`
		Skipped      []skippedBody `json:"skipped"`
	}{messageBody{"Ports removed from pool"}, deleted, list})
}

// list streams the pool, which may have hundreds of thousands of ports.
func (s ports) list(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	var pools []intent.Pool
	err = s.store.View(func(tx *store.Tx) (err error) {
		pools, err = intent.Pools(tx)
		return err
	})
	if err != nil {
		return err
	}
	caller := callerOf(c)
	if !page.whole() {
		return sendPorts(c, pools, page, caller)
	}
	edge.SendList(c, "ports", func(yield func(portBody) bool) {
		intent.Entries(pools, func(e intent.PortEntry) bool { return yield(bodyOfPort(e, caller)) })
	})
	return nil
}

// sendPorts answers with a page of the pool.
func sendPorts(c *fiber.Ctx, pools []intent.Pool, p listPage, caller auth.Principal) error {
	var body struct {
		Ports    []portBody `json:"ports"`
		Continue string     `json:"continue,omitempty"`
	}
	after, ok := intent.ParsePortRef(p.after)
	if p.after != "" && !ok {
		return errContinue
	}
	body.Ports, body.Continue = take(p, func(yield func(string, portBody) bool) {
		show := func(e intent.PortEntry) bool { return yield(e.Ref().String(), bodyOfPort(e, caller)) }
		if p.after == "" {
			intent.Entries(pools, show)
			return
		}
		intent.EntriesAfter(pools, after, show)
	})
	return edge.OK(c, body)
}
