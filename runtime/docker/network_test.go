package docker

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

// TestNetworkOfAnotherDaemon: while another daemon creates the network, the engine refuses a
// second one and does not show the first. The next attempt finds it.
func TestNetworkOfAnotherDaemon(t *testing.T) {
	var shown atomic.Bool
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/networks/create"):
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"message":"cannot create network 5b4 (br-1): conflicts with network 7c1 (br-1): networks have same bridge name"}`)
		case shown.Load():
			fmt.Fprint(w, `{"Name":"berth","Id":"7c1","Driver":"bridge","Options":{"`+optionICC+`":"false"}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"message":"network berth not found"}`)
		}
	})
	require.ErrorIs(t, e.net.ensure(t.Context()), runtime.ErrUnavailable, "worth another attempt")
	shown.Store(true)
	require.NoError(t, e.net.ensure(t.Context()))
}

func TestInterfaceName(t *testing.T) {
	require.Equal(t, "br-5c2f64c7f21e", interfaceName("berth"))
	require.Less(t, len(interfaceName("a-name-much-longer-than-an-interface-may-have")), 16)
}
