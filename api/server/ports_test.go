package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/store"
)

func TestPortPool(t *testing.T) {
	h := newHarness(t)
	require.JSONEq(t, `{"ports":[]}`, h.must("GET", "/network/ports", nil).raw)
	h.refuse(404, "No available ports in pool", "GET", "/network/ports/random", nil)
	a := h.must("POST", "/network/ports", object{"ip": "127.0.0.1", "port": 25565, "protocol": "tcp"})
	require.Equal(t, 200, a.status)
	require.Equal(t, map[string]any{"message": "Port added to pool", "ip": "127.0.0.1", "port": 25565.0, "protocol": "tcp"}, a.json)
	h.refuse(400, "Port already exists in pool", "POST", "/network/ports", object{"ip": "::ffff:127.0.0.1", "port": 25565, "protocol": "tcp"})

	fresh := `{"ip":"127.0.0.1","port":25565,"protocol":"tcp","in_use":false,"container":null,"firewall":{"state":"pending","reason":null}}`
	require.JSONEq(t, fresh, h.must("GET", "/network/ports/127.0.0.1/25565", nil).raw)
	require.JSONEq(t, `{"ports":[`+fresh+`]}`, h.must("GET", "/network/ports", nil).raw)
	require.JSONEq(t, fresh, h.must("GET", "/network/ports/random", nil).raw)
	require.JSONEq(t, fresh, h.must("GET", "/network/ports/random?ip=127.0.0.1&protocol=tcp", nil).raw, "random marks nothing")
	h.refuse(404, "No available ports in pool", "GET", "/network/ports/random?protocol=udp", nil)
	h.refuse(400, "protocol: must be tcp or udp", "GET", "/network/ports/random?protocol=x", nil)
	h.refuse(400, "ip: must be an IPv4 or IPv6 address", "GET", "/network/ports/random?ip=x", nil)

	for _, use := range []bool{true, false} {
		a := h.must("PUT", "/network/ports/127.0.0.1/25565/use", object{"in_use": use})
		require.Equal(t, map[string]any{"message": "Port usage updated", "ip": "127.0.0.1", "port": 25565.0, "in_use": use}, a.json)
		require.Equal(t, use, h.must("GET", "/network/ports/127.0.0.1/25565", nil).json["in_use"])
	}
	h.refuse(400, "in_use: is required", "PUT", "/network/ports/127.0.0.1/25565/use", object{})
	require.Equal(t, "Port removed from pool", h.must("DELETE", "/network/ports/127.0.0.1/25565", nil).json["message"])
	for _, path := range []string{"127.0.0.1/25565", "127.0.0.1/x", "127.0.0.1/0", "127.0.0.1/70000", "localhost/25565", "127.0.0.1/025565"} {
		h.refuse(404, "Port not found in pool", "GET", "/network/ports/"+path, nil)
		h.refuse(404, "Port not found in pool", "DELETE", "/network/ports/"+path, nil)
		h.refuse(404, "Port not found in pool", "PUT", "/network/ports/"+path+"/use", object{"in_use": true})
	}
}

func TestPortsOfBothProtocols(t *testing.T) {
	h := newHarness(t)
	for _, protocol := range []string{"udp", "tcp"} {
		h.must("POST", "/network/ports", object{"ip": "2001:db8::1", "port": 1, "protocol": protocol})
	}
	one := "/network/ports/2001%3Adb8%3A%3A1/1"
	require.Equal(t, "tcp", h.must("GET", one, nil).json["protocol"])
	require.Equal(t, "udp", h.must("GET", "/network/ports/2001:DB8::0:1/1?protocol=udp", nil).json["protocol"])
	h.must("PUT", one+"/use?protocol=udp", object{"in_use": true})
	require.Equal(t, false, h.must("GET", one, nil).json["in_use"])
	h.must("PUT", one+"/use", object{"in_use": true})
	require.Equal(t, true, h.must("GET", one, nil).json["in_use"])
	h.must("DELETE", one+"?protocol=tcp", nil)
	require.Equal(t, "udp", h.must("GET", one, nil).json["protocol"], "udp where there is no tcp")
	h.must("POST", "/network/ports", object{"ip": "2001:db8::1", "port": 1, "protocol": "tcp"})
	h.must("DELETE", one, nil)
	h.refuse(404, "Port not found in pool", "GET", one, nil)
}

func TestPortBodies(t *testing.T) {
	h := newHarness(t)
	before := h.store.Revision()
	for body, want := range map[string]string{
		`{}`: "ip: is required; port: is required; protocol: is required",
		`{"ip":"127.0.0.1","port":0,"protocol":"tcp"}`:            "port: must be between 1 and 65535",
		`{"ip":"127.0.0.1","port":65536,"protocol":"tcp"}`:        "port: must be between 1 and 65535",
		`{"ip":"127.0.0.1","port":"1","protocol":"tcp"}`:          "port: must be an integer",
		`{"ip":"127.0.0.1","port":1.5,"protocol":"TCP"}`:          "port: must be an integer; protocol: must be tcp or udp",
		`{"ip":"127.0.0.01","port":1,"protocol":"tcp"}`:           "ip: must be an IPv4 or IPv6 address",
		`{"ip":"fe80::1%eth0","port":1,"protocol":"tcp"}`:         "ip: must be an IPv4 or IPv6 address",
		`{"ip":"127.0.0.1","port":1,"protocol":"tcp","more":1}`:   "more: unknown field",
		`{"ip":null,"port":1,"protocol":"tcp"}`:                   "ip: is required",
		`{"IP":"127.0.0.1","port":1,"protocol":"tcp"}`:            "ip: is required; IP: unknown field",
		`{"ip":"127.0.0.1","port":1,"protocol":"tcp"} {}`:         "body: has data after the JSON value",
		`{"ip":"127.0.0.1","port":9999999999999999999999,"a":{}}`: "port: must be an integer; protocol: is required; a: unknown field; ip",
	} {
		a := h.do(request{method: "POST", path: "/network/ports", body: body})
		require.Equal(t, 400, a.status, body)
		if !strings.HasSuffix(want, "; ip") {
			require.Equal(t, want, a.json["error"], body)
		}
		require.Equal(t, "invalid_request", a.header.Get("X-Error-Code"))
	}
	require.Equal(t, before, h.store.Revision())
}

func TestBulkPorts(t *testing.T) {
	h := newHarness(t)
	a := h.must("POST", "/network/ports/bulk", object{"ip": "127.0.0.1", "ports": "25565-25600,30000", "protocol": "tcp"})
	require.Equal(t, map[string]any{"message": "Ports added to pool", "added_count": 37.0}, a.json)
	h.refuse(400, "Port already exists in pool: 127.0.0.1:25565", "POST", "/network/ports/bulk", object{"ip": "127.0.0.1", "ports": "1-25565", "protocol": "tcp"})
	h.refuse(404, "Port not found in pool", "GET", "/network/ports/127.0.0.1/1", nil)
	h.refuse(400, "ports: must be ports and ranges between 1 and 65535, such as 25565-25600,30000", "POST", "/network/ports/bulk",
		object{"ip": "127.0.0.1", "ports": "5-", "protocol": "tcp"})
	h.container("mc", h.volume(), 30000)
	a = h.must("POST", "/network/ports/bulk-delete", object{"ports": []object{
		{"ip": "127.0.0.1", "port": 25565}, {"ip": "127.0.0.1", "port": 9}, {"ip": "127.0.0.1", "port": 30000}}})
	require.Equal(t, 1.0, a.json["deleted_count"])
	require.Equal(t, []any{map[string]any{"ip": "127.0.0.1", "port": 30000.0, "protocol": "tcp", "container": "mc"}}, a.json["skipped"])
	h.refuse(409, "Port is already bound by container mc", "DELETE", "/network/ports/127.0.0.1/30000", nil)
	h.refuse(400, "ports[1].port: is required", "POST", "/network/ports/bulk-delete", object{"ports": []object{{"ip": "::", "port": 1}, {"ip": "::"}}})
	h.refuse(400, "ports: is required", "POST", "/network/ports/bulk-delete", object{})
}

func TestFullPool(t *testing.T) {
	h := newHarness(t)
	for _, protocol := range []string{"tcp", "udp"} {
		h.must("POST", "/network/ports/bulk", object{"ip": "0.0.0.0", "ports": "1-65535", "protocol": protocol})
	}
	require.Equal(t, 131070, strings.Count(h.must("GET", "/network/ports", nil).raw, `"port":`))
	deleted := 0.0
	for first := 1; first <= 65535; first += 20000 {
		var list []string
		for port := first; port < min(first+20000, 65536); port++ {
			list = append(list, fmt.Sprintf(`{"ip":"0.0.0.0","port":%d}`, port))
		}
		a := h.do(request{method: "POST", path: "/network/ports/bulk-delete", body: `{"ports":[` + strings.Join(list, ",") + `]}`})
		require.Equal(t, 200, a.status, a.raw)
		deleted += a.json["deleted_count"].(float64)
	}
	require.Equal(t, 131070.0, deleted)
	require.JSONEq(t, `{"ports":[]}`, h.must("GET", "/network/ports", nil).raw)
}

// TestAddListedPort: a port as random returns it is valid in a request.
func TestAddListedPort(t *testing.T) {
	h := newHarness(t)
	h.ports(1000)
	entry := h.must("GET", "/network/ports/random", nil).json
	require.Contains(t, entry, "in_use")
	h.must("POST", "/containers", object{"internal_id": "mc", "image": "busybox:1", "volume_id": h.volume(), "ports": []any{entry}})
	require.Equal(t, "mc", h.must("GET", "/network/ports/127.0.0.1/1000", nil).json["container"])
	h.phase("mc", v1.Ready)
	entry = h.must("GET", "/network/ports/127.0.0.1/1000", nil).json
	h.must("POST", "/containers/mc/rebind-network", object{"ports": []any{entry}})
	h.must("POST", "/containers/mc/rebind-network", object{"ports": []any{}})
	require.EqualValues(t, 1, h.must("POST", "/network/ports/bulk-delete", object{"ports": []any{entry}}).json["deleted_count"])
	h.must("POST", "/network/ports", entry)
	h.refuse(400, "inUse: unknown field", "POST", "/network/ports", object{"ip": "127.0.0.1", "port": 1, "protocol": "tcp", "inUse": true})
}

// TestLimitedTokenSeesItsPorts: a token that is limited to containers sees the ports of these alone.
func TestLimitedTokenSeesItsPorts(t *testing.T) {
	h := newHarness(t)
	h.ports(1000, 1001, 1002)
	volume := h.volume()
	h.container("mc", volume, 1001)
	h.container("other", volume, 1002)
	token := h.mint(object{"scopes": []string{"read"}, "containers": []string{"mc"}})
	get := func(path string) answer { return h.do(request{method: "GET", path: path, token: token}) }
	for _, path := range []string{"/network/ports", "/network/ports?limit=1"} {
		list := get(path).json["ports"].([]any)
		require.Len(t, list, 1, path)
		require.EqualValues(t, 1001, list[0].(map[string]any)["port"])
	}
	for port, want := range map[string]int{"1000": 404, "1001": 200, "1002": 404} {
		require.Equal(t, want, get("/network/ports/127.0.0.1/"+port).status, port)
	}
}

// TestReadsOfATenant: a tenant has some requests that read answered at once, and others do not wait for them.
func TestReadsOfATenant(t *testing.T) {
	h := newHarness(t)
	h.container("mc", h.volume())
	token := h.mint(object{"scopes": []string{"read"}, "containers": []string{"mc"}})
	reads := h.server.handlers.files.sessions.access.reads
	var uid string
	o, err := store.Containers.Get(h.store.Read(), "mc")
	uid = o.Meta.UID
	require.NoError(t, err)
	var leaves []func()
	for range limit.Reads().Tenant {
		leave, err := reads.Enter(t.Context(), limit.Claim{Tenant: "container " + uid})
		require.NoError(t, err)
		leaves = append(leaves, leave)
	}
	got := make(chan answer, 1)
	go func() { got <- h.do(request{method: "GET", path: "/network/ports", token: token}) }()
	require.Eventually(t, func() bool { return reads.Waiting() == 1 }, time.Minute, time.Millisecond)
	require.Equal(t, 200, h.call("GET", "/network/ports", nil).status)
	require.Equal(t, 200, h.do(request{method: "GET", path: "/network/ports", token: h.mint(object{"scopes": []string{"read"}})}).status)
	leaves[0]()
	require.Equal(t, 200, (<-got).status)
}
