package docker

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// busyNetwork is an engine on which another daemon creates the network: it refuses
// each creation, and shows the network after so many inspects.
func busyNetwork(t *testing.T, inspects int64) (e *Engine, creations *atomic.Int64) {
	t.Helper()
	creations = new(atomic.Int64)
	var seen atomic.Int64
	return stub(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/networks/create"):
			creations.Add(1)
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"message":"cannot create network 5b4 (br-1): conflicts with network 7c1 (br-1): networks have same bridge name"}`)
		case seen.Add(1) > inspects:
			fmt.Fprint(w, `{"Name":"berth","Id":"7c1","Driver":"bridge","Options":{"`+optionICC+`":"false"}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"message":"network berth not found"}`)
		}
	}), creations
}

func TestNetworkOfAnotherDaemon(t *testing.T) {
	e, creations := busyNetwork(t, 3)
	require.NoError(t, e.core.net.ensure(t.Context()))
	require.EqualValues(t, 3, creations.Load())
}

// TestNetworkNeverAppears waits for a network that another daemon never completes.
func TestNetworkNeverAppears(t *testing.T) {
	e, creations := busyNetwork(t, 1<<40)
	require.ErrorIs(t, e.core.net.ensure(t.Context()), errNetworkTaken)
	require.EqualValues(t, networkTries+1, creations.Load())
}

func TestInterfaceName(t *testing.T) {
	require.Equal(t, "br-5c2f64c7f21e", interfaceName("berth"))
	require.Less(t, len(interfaceName("a-name-much-longer-than-an-interface-may-have")), 16)
}
