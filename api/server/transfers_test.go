package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// TestTransferRequests: a request for a transfer is checked as a whole; the node itself is refused.
func TestTransferRequests(t *testing.T) {
	h, _ := newShelved(t)
	h.container("mc", h.volume())
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return store.Containers.SetStatus(tx, "mc", func(s *v1.ContainerStatus) { s.Phase, s.ObservedInstall = v1.Ready, 1 })
	}))
	path := "/containers/mc/transfer"
	body := func(more object) object {
		b := object{"url": "https://node2:8070", "token": "berth_0123456789abcdef0123456789abcdef"}
		for k, v := range more {
			b[k] = v
		}
		return b
	}
	h.refuse(404, "Container not found", "POST", "/containers/no/transfer", body(nil))
	for text, more := range map[string]object{
		"must be that of another daemon":  {"url": "http://127.0.0.1:8070"},
		"must be the http or https URL":   {"url": "https://user@node2:8070"},
		"must be 0, or at least 65536":    {"bandwidth": 1000},
		"must be between 0 and 30d":       {"keep": "31d"},
		"ports[0].to.port":                {"ports": []object{{"ip": "10.0.0.1", "port": 1, "protocol": "tcp", "to": object{"ip": "10.0.0.1", "port": 0}}}},
		"does not have this port":         {"ports": []object{{"ip": "10.0.0.1", "port": 1, "protocol": "tcp", "to": object{"ip": "10.0.0.1", "port": 2}}}},
		"must be empty with random_ports": {"random_ports": true, "ports": []object{{"ip": "10.0.0.1", "port": 1, "protocol": "tcp", "to": object{"ip": "10.0.0.1", "port": 2}}}},
	} {
		answer := h.call("POST", path, body(more))
		require.Equal(t, 400, answer.status, text)
		require.Contains(t, answer.raw, text)
	}
	for _, random := range []any{true, false, nil} {
		id := h.must("POST", path, body(object{"random_ports": random})).json["transfer_id"].(string)
		o, err := intent.FindTransfer(h.store.Read(), id)
		require.NoError(t, err)
		require.Equal(t, random == true, o.Spec.RandomPorts)
		h.refuse(409, "Container is being transferred", "POST", path, body(nil))
		require.NoError(t, h.store.Update(func(tx *store.Tx) error { return store.Transfers.Purge(tx, id) }))
	}
}
