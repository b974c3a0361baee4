package server

import (
	"strconv"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// ports holds the handlers for the port pool.
type ports struct {
	store   *store.Store
	decoder decoder
}

// portBody is an entry of the port pool.
type portBody struct {
	IP        string       `json:"ip"`
	Port      int          `json:"port"`
	Protocol  string       `json:"protocol"`
	InUse     bool         `json:"in_use"`
	Container *string      `json:"container"`
	Firewall  firewallBody `json:"firewall"`
}

type firewallBody struct {
	State  string  `json:"state"`
	Reason *string `json:"reason"`
}

// bodyOfPort returns a pool entry as caller sees it: container is null unless the
// caller may access it.
func bodyOfPort(e intent.PortEntry, caller auth.Principal) portBody {
	b := portBody{e.IP, e.Port, e.Protocol, e.InUse, nil, firewallBody{e.Firewall.State, orNull(e.Firewall.Reason)}}
	if caller.CanAccess(e.Container) {
		b.Container = orNull(e.Container)
	}
	return b
}

// orNull returns nil for an empty text.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (s ports) add(c *fiber.Ctx) error {
	var body struct {
		IP       string `json:"ip" api:"required"`
		Port     int    `json:"port" api:"required"`
		Protocol string `json:"protocol" api:"required"`

		// Read-only fields of a pool entry, accepted and ignored.
		InUse     any `json:"in_use" api:"readonly"`
		Container any `json:"container" api:"readonly"`
		Firewall  any `json:"firewall" api:"readonly"`
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	ref := intent.PortRef{IP: body.IP, Port: body.Port, Protocol: body.Protocol}
	describe(c, func(a *v1.Audit) { a.Object = portName(body.IP, strconv.Itoa(body.Port), body.Protocol) })
	if f.Any() {
		intent.CheckPort(&f, &ref)
		return f.Err()
	}
	if err := intent.AddPort(requestOf(c, s.store), ref); err != nil {
		return err
	}
	ref.IP, _ = intent.CanonicalIP(ref.IP) // AddPort has accepted it
	return edge.OK(c, struct {
		messageBody
		IP       string `json:"ip"`
		Port     int    `json:"port"`
		Protocol string `json:"protocol"`
	}{messageBody{"Port added to pool"}, ref.IP, ref.Port, ref.Protocol})
}

// portRef returns the port that the path of a request names. If the path has no
// valid address and port the error is v1.ErrPortNotFound.
func portRef(c *fiber.Ctx) (intent.PortRef, error) {
	ip, isIP := intent.CanonicalIP(edge.Param(c, "ip"))
	port, isPort := intent.ParsePort(edge.Param(c, "port"))
	if !isIP || !isPort {
		return intent.PortRef{}, v1.ErrPortNotFound
	}
	protocol, err := protocolQuery(c)
	return intent.PortRef{IP: ip, Port: port, Protocol: protocol}, err
}

// protocolQuery returns the query parameter protocol; empty means any.
func protocolQuery(c *fiber.Ctx) (string, error) {
	protocol := c.Query("protocol")
	if protocol != "" && protocol != "tcp" && protocol != "udp" {
		return "", v1.Errorf(v1.InvalidRequest, "protocol: must be tcp or udp")
	}
	return protocol, nil
}

func (s ports) get(c *fiber.Ctx) error {
	ref, err := portRef(c)
	if err != nil {
		return err
	}
	return s.answer(c, func(tx *store.Tx) (intent.PortEntry, error) { return intent.GetPort(tx, ref) })
}

func (s ports) random(c *fiber.Ctx) error {
	protocol, err := protocolQuery(c)
	if err != nil {
		return err
	}
	ip := c.Query("ip")
	if ip != "" {
		canonical, isIP := intent.CanonicalIP(ip)
		if !isIP {
			return v1.Errorf(v1.InvalidRequest, "ip: must be an IPv4 or IPv6 address")
		}
		ip = canonical
	}
	return s.answer(c, func(tx *store.Tx) (intent.PortEntry, error) { return intent.RandomPort(tx, ip, protocol) })
}

func (s ports) answer(c *fiber.Ctx, find func(*store.Tx) (intent.PortEntry, error)) error {
	var e intent.PortEntry
	err := s.store.View(func(tx *store.Tx) (err error) {
		e, err = find(tx)
		return err
	})
	if err != nil {
		return err
	}
	return edge.OK(c, bodyOfPort(e, callerOf(c)))
}

func (s ports) use(c *fiber.Ctx) error {
	var body struct {
		InUse bool `json:"in_use" api:"required"`
	}
	if err := s.decoder.decodeStrict(c, &body); err != nil {
		return err
	}
	ref, err := portRef(c)
	if err != nil {
		return err
	}
	if err := intent.UsePort(requestOf(c, s.store), ref, body.InUse); err != nil {
		return err
	}
	return edge.OK(c, struct {
		messageBody
		IP    string `json:"ip"`
		Port  int    `json:"port"`
		InUse bool   `json:"in_use"`
	}{messageBody{"Port usage updated"}, ref.IP, ref.Port, body.InUse})
}

func (s ports) delete(c *fiber.Ctx) error {
	ref, err := portRef(c)
	if err != nil {
		return err
	}
	if err := intent.DeletePort(requestOf(c, s.store), ref); err != nil {
		return err
	}
	return edge.OK(c, messageBody{"Port removed from pool"})
}

// list streams the pool, which may have hundreds of thousands of ports, or answers with a
// page of it.
func (s ports) list(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	if page != (listPage{}) {
		return s.sendPage(c, page)
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
	edge.SendList(c, "ports", func(yield func(portBody) bool) {
		intent.Entries(pools, func(e intent.PortEntry) bool { return yield(bodyOfPort(e, caller)) })
	})
	return nil
}

// sendPage answers with a page of the pool.
func (s ports) sendPage(c *fiber.Ctx, p listPage) error {
	var body struct {
		Ports    []portBody `json:"ports"`
		Continue string     `json:"continue,omitempty"`
	}
	after, ok := intent.ParsePortRef(p.after)
	if p.after != "" && !ok {
		return errContinue
	}
	caller := callerOf(c)
	err := s.store.View(func(tx *store.Tx) (err error) {
		body.Ports, body.Continue = take(p, func(yield func(string, portBody) bool) {
			err = intent.EntriesAfter(tx, after, func(e intent.PortEntry) bool { return yield(e.Ref().String(), bodyOfPort(e, caller)) })
		})
		return err
	})
	if err != nil {
		return err
	}
	return edge.OK(c, body)
}
