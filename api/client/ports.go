package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	v1 "berth/api/v1"
)

// DeletedPorts is the result of DeleteAll.
type DeletedPorts struct {
	Count   int              `json:"deleted_count"`
	Skipped []v1.ClaimedPort `json:"skipped"` // claimed by containers
}

// Ports are the calls for the port pool.
type Ports struct{ c *Client }

func portPath(p v1.PortRef) string {
	return "/network/ports/" + url.PathEscape(p.IP) + "/" + strconv.Itoa(p.Port)
}

// List returns all ports of the pool.
func (s Ports) List(ctx context.Context) ([]v1.PoolPort, error) {
	return list[[]v1.PoolPort](ctx, s.c, "/network/ports", "ports")
}

// Get returns a port of the pool.
func (s Ports) Get(ctx context.Context, p v1.PortRef) (port v1.PoolPort, err error) {
	err = s.c.get(ctx, portPath(p)+query("protocol", p.Protocol), &port)
	return port, err
}

// Add adds a port to the pool.
func (s Ports) Add(ctx context.Context, p v1.PortRef) error {
	return s.c.Call(ctx, http.MethodPost, "/network/ports", p, nil)
}

// AddRanges adds ports such as "25565-25600,30000" to the pool, all of them or none.
// It returns their number.
func (s Ports) AddRanges(ctx context.Context, ip, ranges, protocol string) (added int, err error) {
	request := map[string]string{"ip": ip, "ports": ranges, "protocol": protocol}
	return made[int](ctx, s.c, "/network/ports/bulk", request, "added_count")
}

// Delete deletes a port from the pool. It fails if a container has claimed it.
func (s Ports) Delete(ctx context.Context, p v1.PortRef) error {
	return s.c.Call(ctx, http.MethodDelete, portPath(p)+query("protocol", p.Protocol), nil, nil)
}

// DeleteAll deletes ports from the pool, except for those that containers have
// claimed. The daemon's server.body_limit bounds their number.
func (s Ports) DeleteAll(ctx context.Context, ports []v1.PortRef) (d DeletedPorts, err error) {
	body := struct {
		Ports []v1.PortRef `json:"ports"`
	}{ports}
	err = s.c.Call(ctx, http.MethodPost, "/network/ports/bulk-delete", body, &d)
	return d, err
}
