package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// TestNextStart requires that a change for the next start leaves a run alone and is in force after a restart, and
// that placeholders in env have the values of the container's own ports and limits.
func TestNextStart(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	port := b.Port(t)
	spec := berthtest.Spec{"startup_command": "echo at $AT with $SIZE as $NAME; sleep 100000", "start_pattern": "^at ", "power": "running",
		"env":    map[string]string{"AT": "${BERTH_IP}:${BERTH_PORT}", "SIZE": "${BERTH_MEMORY}", "NAME": "first"},
		"ports":  []berthtest.Spec{{"ip": port.IP, "port": port.Port, "protocol": port.Protocol}},
		"limits": berthtest.Spec{"memory": 64 << 20}}
	b.Create(t, "mc", spec)
	before := b.State(t, "mc", "running")
	logs := func() string { return string(b.Must(t, "GET", "/containers/mc/logs", nil).Body) }
	require.Contains(t, logs(), fmt.Sprintf("at %s:%d with 56 as first", port.IP, port.Port), "the memory without its addition")

	changed := spec.With(berthtest.Spec{"volume_id": before.VolumeID, "image": before.Image, "env": map[string]string{"AT": "${BERTH_PORT}", "SIZE": "$${BERTH_MEMORY}", "NAME": "second"}})
	b.Must(t, "PUT", "/containers/mc?apply=next-start", changed)
	pending := b.Await(t, "mc", "the change is pending", func(c berthtest.Container) bool {
		return v1.FindCondition(c.Conditions, v1.Pending).Status == v1.True
	})
	require.Contains(t, v1.FindCondition(pending.Conditions, v1.Pending).Message, "env")
	require.Equal(t, before.ContainerID, pending.ContainerID)
	require.NotContains(t, logs(), "second", "the run goes on")
	b.Verb(t, "mc", "restart")
	after := b.Await(t, "mc", "the change is in force", func(c berthtest.Container) bool {
		return c.State == "running" && v1.FindCondition(c.Conditions, v1.Pending).Status != v1.True
	})
	require.NotEqual(t, before.ContainerID, after.ContainerID)
	require.Contains(t, logs(), fmt.Sprintf("at %d with ${BERTH_MEMORY} as second", port.Port))
}
