package docker

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

// writeRecord writes a frame of stdout.
func writeRecord(w io.Writer, at time.Time, text string) {
	text = at.UTC().Format("2006-01-02T15:04:05.000000000Z") + " " + text + "\n"
	fmt.Fprintf(w, "\x01\x00\x00\x00%s%s", binary.BigEndian.AppendUint32(nil, uint32(len(text))), text)
}

// The engine's log has 40,000 lines, one in each second.
func TestLogsReadNoMoreThanNeeded(t *testing.T) {
	const n = 40_000
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(i int) time.Time { return began.Add(time.Duration(i) * time.Second) }
	var requests []string
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/logs") {
			fmt.Fprint(w, describeMC)
			return
		}
		q := r.URL.Query()
		requests = append(requests, q.Get("tail")+" "+q.Get("since"))
		from := 0
		if tail, err := strconv.Atoi(q.Get("tail")); err == nil {
			from = max(0, n-tail)
		}
		for i := from; i < n; i++ {
			writeRecord(w, at(i), strconv.Itoa(i))
		}
	})
	for _, c := range []struct {
		since int
		want  []string
	}{
		{n - 1, []string{"512 "}},
		{n - 512, []string{"512 "}},
		{n - 513, []string{"512 ", "32768 "}},
		{n - 32768, []string{"512 ", "32768 "}},
		{n - 32769, []string{"512 ", "32768 ", " " + sinceParameter(at(n-32769))}},
	} {
		requests = nil
		next := c.since + 1
		require.NoError(t, e.Logs(t.Context(), runtime.Target{ContainerID: "cid", Ended: true}, at(c.since), func(l runtime.Line) error {
			if l.Time.After(at(c.since)) { // the stub does not know since
				require.Equal(t, strconv.Itoa(next), string(l.Data))
				next++
			}
			return nil
		}))
		require.Equal(t, n, next)
		require.Equal(t, c.want, requests)
	}
}

// A line of the other stream stands before the last piece of a long line, which has
// the time of its beginning. A stream passes on whatever follows its first new line.
func TestLogsKeepOlderPieces(t *testing.T) {
	early := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := stub(t, func(w http.ResponseWriter, r *http.Request) {
		writeRecord(w, early, "first")
		writeRecord(w, early.Add(time.Second), "other")
		writeRecord(w, early, "end of the first")
	})
	var got []string
	require.NoError(t, e.Logs(t.Context(), runtime.Target{ContainerID: "cid", Ended: true}, early, func(l runtime.Line) error {
		got = append(got, string(l.Data))
		return nil
	}))
	require.Equal(t, []string{"other", "end of the first"}, got)
}
