package server

import (
	"github.com/gofiber/fiber/v2"

	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
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
			IP       string `json:"ip" api:"required"`
			Port     int    `json:"port" api:"required"`
			Protocol string `json:"protocol"`

			// Read-only fields of a pool entry, accepted and ignored.
			InUse     any `json:"in_use" api:"readonly"`
			Container any `json:"container" api:"readonly"`
			Firewall  any `json:"firewall" api:"readonly"`
		} `json:"ports" api:"required"`
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

func (s ports) addBulk(c *fiber.Ctx) error {
	var body struct {
		IP       string `json:"ip" api:"required"`
		Ports    string `json:"ports" api:"required"`
		Protocol string `json:"protocol" api:"required"`
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	describe(c, func(a *v1.Audit) { a.Object = portName(body.IP, body.Ports, body.Protocol) })
	wanted := intent.CheckPorts(&f, body.IP, body.Ports, body.Protocol)
	if err := f.Err(); err != nil {
		return err
	}
	if err := intent.AddPorts(requestOf(c, s.store), wanted); err != nil {
		return err
	}
	return edge.OK(c, struct {
		messageBody
		AddedCount int `json:"added_count"`
	}{messageBody{"Ports added to pool"}, wanted.Ports.Len()})
}
