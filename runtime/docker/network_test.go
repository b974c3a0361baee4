package docker

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	dockernetwork "github.com/docker/docker/api/types/network"
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

func TestRouteMTU(t *testing.T) {
	const head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
	of := func(name string) int { return map[string]int{"wg0": 1420, "eth0": 9001}[name] }
	for routes, want := range map[string]int{
		"": 0,
		"eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n":                                                                9001,
		"eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\nwg0\t00000000\t00000000\t0001\t0\t0\t50\t00000000\t0\t0\t0\n":    1420,
		"wg0\t00000000\t00000000\t0001\t0\t0\t50\t00000000\t0\t0\t0\neth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n":    1420,
		"wg0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n":                                                                   0,
		"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t1300\t0\t0\nwg0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t1200\t0\t0\n": 1300,
		"none\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n":                                                                  0,
	} {
		file := filepath.Join(t.TempDir(), "route")
		require.NoError(t, os.WriteFile(file, []byte(head+routes), 0o600))
		require.Equal(t, want, routeMTU(file, of), routes)
	}
	require.Zero(t, routeMTU(filepath.Join(t.TempDir(), "none"), of))
}

// TestNetworkOfAnotherMTU requires that a network is reported whose packets the host's route would lose.
func TestNetworkOfAnotherMTU(t *testing.T) {
	for _, c := range []struct {
		mtu      int
		options  map[string]string
		reported bool
	}{{1400, nil, true}, {1400, map[string]string{optionMTU: "1400"}, false}, {1500, nil, false}, {9000, nil, true}, {1400, map[string]string{optionMTU: "1300"}, true}} {
		var log bytes.Buffer
		e := stub(t, func(http.ResponseWriter, *http.Request) {})
		n := newNetwork(Config{Network: "berth", MTU: c.mtu}, e.conn, e.calls, slog.New(slog.NewTextHandler(&log, nil)))
		n.checkMTU(dockernetwork.Inspect{Driver: "bridge", Options: c.options})
		require.Equal(t, c.reported, strings.Contains(log.String(), "another MTU"), "%d %v: %s", c.mtu, c.options, &log)
	}
	e := stub(t, func(http.ResponseWriter, *http.Request) {})
	var log bytes.Buffer
	n := newNetwork(Config{Network: "berth"}, e.conn, e.calls, slog.New(slog.NewTextHandler(&log, nil)))
	n.checkMTU(dockernetwork.Inspect{Driver: "bridge", Options: map[string]string{optionMTU: "600"}})
	require.Empty(t, log.String(), "a smaller one than that of the host's route loses nothing")
}
