package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	"berth/hack/test/berthtest"
)

// TestPoolOfEveryPort adds all ports of both protocols, lists them, kills the
// daemon, and deletes them in bulk. The daemon's memory stays below 256 MiB.
func TestPoolOfEveryPort(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	const all = 131_070
	at := time.Now()
	lap := func(what string) {
		t.Logf("%s: %s, peak of memory %d MiB", what, time.Since(at).Round(time.Millisecond), peak(t, b)>>20)
		at = time.Now()
	}
	lap("before")
	for _, protocol := range []string{"tcp", "udp"} {
		b.Post(t, "/network/ports/bulk", map[string]string{"ip": "0.0.0.0", "ports": "1-65535", "protocol": protocol})
	}
	lap("added")
	require.Equal(t, all, listed(t, b))
	lap("listed")
	for range 3 {
		require.Equal(t, all, listed(t, b))
	}
	lap("listed three times more")
	require.Less(t, peak(t, b), 256<<20)
	b.Restart(t)
	require.Equal(t, all, listed(t, b))
	lap("killed, and listed again")
	deleted := 0
	for first := 1; first <= 65535; first += 20_000 {
		var refs []string
		for port := first; port < min(first+20_000, 65536); port++ {
			refs = append(refs, fmt.Sprintf(`{"ip":"0.0.0.0","port":%d}`, port))
		}
		var answer struct {
			DeletedCount int `json:"deleted_count"`
		}
		b.Post(t, "/network/ports/bulk-delete", `{"ports":[`+strings.Join(refs, ",")+`]}`).Decode(t, &answer)
		deleted += answer.DeletedCount
	}
	require.Equal(t, all, deleted)
	lap("deleted")
	require.Zero(t, listed(t, b))
	require.Less(t, peak(t, b), 256<<20)
}

// listed returns the number of ports in GET /network/ports. It uses net/http's
// client, because checking so long an answer against the document takes minutes.
func listed(t *testing.T, b *berthtest.Berth) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+b.Addr+"/network/ports", nil)
	require.NoError(t, err)
	request.Header = http.Header{"Authorization": {"Bearer " + b.Token}, "Accept": {client.Vendor}}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, 200, answer.StatusCode)
	require.True(t, strings.HasSuffix(string(text), "]}"), "the whole of it")
	return strings.Count(string(text), `"port":`)
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak returns the peak resident memory of the daemon's process, in bytes.
func peak(t *testing.T, b *berthtest.Berth) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.Pid()))
	require.NoError(t, err)
	found := highWater.FindSubmatch(text)
	require.NotNil(t, found)
	kib, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return kib << 10
}
