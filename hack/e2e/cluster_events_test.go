//go:build cluster

package e2e_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"

	"berth/hack/test/berthtest"
)

// TestClusterEvents: `kubectl describe pod` shows the states of a server, with the permissions of role.yaml.
func TestClusterEvents(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Started(t, "mc", berthtest.Spec{"startup_command": "sleep 1; exit 3"})
	var seen map[string]core1.Event
	berthtest.Until(t, wait, "the events of its states", func() bool {
		status, answer := b.Cluster.Call(t, http.MethodGet, "/api/v1/namespaces/"+b.Cluster.Name+"/events", nil)
		require.Equal(t, http.StatusOK, status)
		var list core1.EventList
		require.NoError(t, json.Unmarshal(answer, &list))
		seen = map[string]core1.Event{}
		for _, e := range list.Items {
			if e.Source.Component == "berth" {
				seen[e.Reason] = e
			}
		}
		return seen["Running"].Message != "" && seen["Exit"].Message != ""
	})
	require.Equal(t, "container mc is running", seen["Running"].Message)
	require.Contains(t, seen["Exit"].Message, "exit code 3")
	require.Equal(t, core1.EventTypeWarning, seen["Exit"].Type)
	pod := b.Cluster.Pods(t, "mc")[0]
	require.Equal(t, pod.Name, seen["Exit"].InvolvedObject.Name)
	require.NotEmpty(t, seen["Exit"].InvolvedObject.UID)
}
