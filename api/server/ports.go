package server

import (
	"strconv"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// ports holds the handlers for the port pool.
type ports struct{ store *store.Store }

// shownPort returns a pool entry as caller sees it: container is null unless the
// caller may access it.
func shownPort(p v1.PoolPort, caller auth.Principal) v1.PoolPort {
	if !caller.CanAccess(string(p.Container)) {
		p.Container = ""
	}
	return p
}

func (s ports) check(c *call, r *v1.PortRequest) error {
	c.describe(func(a *v1.Audit) { a.Object = portName(r.IP, strconv.Itoa(r.Port), r.Protocol) })
	ref := v1.PortRef(*r)
	intent.CheckPort(&c.fieldErrors, &ref)
	return nil
}

type addedPortBody struct {
	messageBody
	v1.PortRef
}

func (s ports) add(c *call, r v1.PortRequest) (addedPortBody, error) {
	if err := intent.AddPort(c.writer(s.store), v1.PortRef(r)); err != nil {
		return addedPortBody{}, err
	}
	r.IP, _ = intent.CanonicalIP(r.IP) // AddPort has accepted it
	return addedPortBody{messageBody{"Port added to pool"}, v1.PortRef(r)}, nil
}

// portRef returns the port that the path of a request names. If the path has no
// valid address and port the error is v1.ErrPortNotFound.
func (c *call) portRef() (v1.PortRef, error) {
	ip, isIP := intent.CanonicalIP(c.Params("ip"))
	port, isPort := intent.ParsePort(c.Params("port"))
	if !isIP || !isPort {
		return v1.PortRef{}, v1.ErrPortNotFound
	}
	protocol, err := c.protocolQuery()
	return v1.PortRef{IP: ip, Port: port, Protocol: protocol}, err
}

// protocolQuery returns the query parameter protocol; empty means any.
func (c *call) protocolQuery() (string, error) {
	protocol := c.Query("protocol")
	if protocol != "" && protocol != "tcp" && protocol != "udp" {
		return "", v1.Errorf(v1.InvalidRequest, "protocol: must be tcp or udp")
	}
	return protocol, nil
}

func (s ports) get(c *call) (v1.PoolPort, error) {
	ref, err := c.portRef()
	if err != nil {
		return v1.PoolPort{}, err
	}
	p, err := intent.GetPort(s.store.Read(), ref)
	if err == nil && !canAccessPort(p, c.caller) {
		err = v1.ErrPortNotFound
	}
	return shownPort(p, c.caller), err
}

func (s ports) random(c *call) (v1.PoolPort, error) {
	protocol, err := c.protocolQuery()
	if err != nil {
		return v1.PoolPort{}, err
	}
	ip := c.Query("ip")
	if ip != "" {
		canonical, isIP := intent.CanonicalIP(ip)
		if !isIP {
			return v1.PoolPort{}, v1.Errorf(v1.InvalidRequest, "ip: must be an IPv4 or IPv6 address")
		}
		ip = canonical
	}
	p, err := intent.RandomPort(s.store.Read(), ip, protocol)
	return shownPort(p, c.caller), err
}

type portUseRequest struct {
	InUse bool `json:"in_use" api:"required"`
}

type portUseBody struct {
	messageBody
	IP    string `json:"ip"`
	Port  int    `json:"port"`
	InUse bool   `json:"in_use"`
}

func (s ports) use(c *call, r portUseRequest) (portUseBody, error) {
	ref, err := c.portRef()
	if err != nil {
		return portUseBody{}, err
	}
	mark := intent.UnmarkPort
	if r.InUse {
		mark = intent.MarkPort
	}
	return portUseBody{messageBody{"Port usage updated"}, ref.IP, ref.Port, r.InUse}, mark(c.writer(s.store), ref)
}

func (s ports) delete(c *call) (messageBody, error) {
	ref, err := c.portRef()
	if err != nil {
		return messageBody{}, err
	}
	return messageBody{"Port removed from pool"}, intent.DeletePort(c.writer(s.store), ref)
}

type portsBody struct {
	Ports    []v1.PoolPort `json:"ports"`
	Continue string        `json:"continue,omitempty"`
}

// canAccessPort reports whether a caller can access a port: one that is limited to containers only theirs.
func canAccessPort(p v1.PoolPort, caller auth.Principal) bool {
	return !caller.Restricted() || p.Container != "" && caller.CanAccess(string(p.Container))
}

// list streams the pool, which may have hundreds of thousands of ports, or answers with a
// page of it.
func (s ports) list(c *call) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	after, ok := intent.ParsePortKey(page.after)
	if page.after != "" && !ok {
		return errContinue
	}
	pools, caller := intent.Pools(s.store.Read()), c.caller
	if page == (listPage{}) && !caller.Restricted() {
		edge.SendList(c.Ctx, "ports", func(yield func(v1.PoolPort) bool) {
			intent.Entries(pools, after, func(p v1.PoolPort) bool { return yield(shownPort(p, caller)) })
		})
		return nil
	}
	var body portsBody
	body.Ports, body.Continue = take(page, func(yield func(string, v1.PoolPort) bool) {
		intent.Entries(pools, after, func(p v1.PoolPort) bool {
			return !canAccessPort(p, caller) || yield(intent.PortKey(p.PortRef), shownPort(p, caller))
		})
	})
	return c.answer(body, nil)
}

type deletePortsRequest struct {
	Ports []v1.PortRef `json:"ports" api:"required"`
}

type deletedPortsBody struct {
	messageBody
	DeletedCount int              `json:"deleted_count"`
	Skipped      []v1.ClaimedPort `json:"skipped"`
}

// checkRefs makes the addresses of the request canonical too.
func (s ports) checkRefs(c *call, r *deletePortsRequest) error {
	intent.CheckRefs(&c.fieldErrors, r.Ports)
	return nil
}

func (s ports) deleteBulk(c *call, r deletePortsRequest) (deletedPortsBody, error) {
	deleted, skipped, err := intent.DeletePorts(c.writer(s.store), r.Ports)
	return deletedPortsBody{messageBody{"Ports removed from pool"}, deleted, append([]v1.ClaimedPort{}, skipped...)}, err
}

type addedPortsBody struct {
	messageBody
	AddedCount int `json:"added_count"`
}

type portRangesRequest struct {
	v1.PortRangesRequest

	wanted v1.PoolSpec // that checkRanges has found in it
}

func (s ports) checkRanges(c *call, r *portRangesRequest) error {
	c.describe(func(a *v1.Audit) { a.Object = portName(r.IP, r.Ports, r.Protocol) })
	r.wanted = intent.CheckPorts(&c.fieldErrors, r.IP, r.Ports, r.Protocol)
	return nil
}

func (s ports) addBulk(c *call, r portRangesRequest) (addedPortsBody, error) {
	return addedPortsBody{messageBody{"Ports added to pool"}, r.wanted.Ports.Len()}, intent.AddPorts(c.writer(s.store), r.wanted)
}
