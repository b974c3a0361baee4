package remote

import (
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// refusing returns an answer function that responds with 422 to batches with one of seqs.
func refusing(seqs ...uint64) func(request) (int, error) {
	return func(r request) (int, error) {
		if slices.ContainsFunc(r.Events, func(m message) bool { return slices.Contains(seqs, m.Seq) }) {
			return 422, nil
		}
		return 200, nil
	}
}

func TestOnlyRefusedTransitionIsParked(t *testing.T) {
	live(t, func(w *world) {
		bad := []uint64{37, 38, 199, 230, 260} // more than freeRefusals, but not in a row
		w.panel.set(refusing(bad...))
		w.emit(300)
		w.pass(time.Second)
		want := slices.DeleteFunc(upTo(300), func(s uint64) bool { return slices.Contains(bad, s) })
		require.Equal(t, want, w.panel.seqs(), "all others, in order, without a wait")
		require.Equal(t, float64(len(bad)), w.metric("berth_remote_parked_total", ""))
		require.Less(t, len(w.panel.requests()), 20*len(bad))
		require.Zero(t, w.metric("berth_remote_lag_events", ""))
		for _, seq := range []string{"seq=37", "seq=38", "seq=199"} {
			require.Contains(t, w.log.String(), seq)
		}
	})
}

func TestRefusingPanelMissesFew(t *testing.T) {
	live(t, func(w *world) {
		w.panel.set(always(http.StatusBadRequest))
		w.emit(1000)
		w.pass(time.Hour)
		parked := w.metric("berth_remote_parked_total", "")
		require.Less(t, parked, 25.0)
		require.Greater(t, parked, float64(freeRefusals), "none is retried forever")
		tries := map[uint64]int{}
		for _, r := range w.panel.requests() {
			tries[r.Events[0].Seq]++
		}
		for seq, n := range tries {
			require.LessOrEqual(t, n, 8, "transition %d", seq)
		}
		w.panel.set(always(200))
		w.pass(maxWait * 5 / 4)
		require.Equal(t, upTo(1000)[int(parked):], w.panel.seqs())
	})
}

func TestConfigurationErrorsSkipNothing(t *testing.T) {
	for status, why := range map[int]string{
		401: "unauthorized", 403: "unauthorized", 407: "unauthorized",
		404: "not_found", 405: "not_found", 410: "not_found",
		301: "redirect", 307: "redirect", 308: "redirect",
	} {
		live(t, func(w *world) {
			w.panel.set(always(status))
			w.emit(10)
			w.pass(time.Hour)
			tries := len(w.panel.requests())
			require.Greater(t, tries, 10)
			require.Less(t, tries, 25, "retried slowly")
			require.GreaterOrEqual(t, w.panel.requests()[1].at, minOperatorWait)
			require.Equal(t, float64(tries), w.metric("berth_remote_failures_total", why))
			require.Zero(t, w.metric("berth_remote_parked_total", ""))
			require.Contains(t, w.log.String(), "level=WARN msg=\"the panel does not accept transitions\" reason="+why)
			w.panel.set(always(200))
			w.pass(maxWait * 5 / 4)
			require.Equal(t, upTo(10), w.panel.seqs())
		})
	}
}

func TestBusyPanelIsRetried(t *testing.T) {
	for status, why := range map[int]string{408: "busy", 425: "busy", 429: "busy", 500: "server_error", 503: "server_error"} {
		live(t, func(w *world) {
			w.panel.set(always(status))
			w.emit(1)
			w.pass(10 * time.Second)
			require.GreaterOrEqual(t, len(w.panel.requests()), 3)
			require.Positive(t, w.metric("berth_remote_failures_total", why))
			w.panel.set(always(200))
			w.pass(20 * time.Second)
			require.Equal(t, upTo(1), w.panel.seqs())
			require.Zero(t, w.metric("berth_remote_parked_total", ""))
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	live(t, func(w *world) {
		w.panel.header = http.Header{"Retry-After": {"600"}}
		w.panel.set(always(429))
		w.emit(1)
		w.pass(599 * time.Second)
		require.Len(t, w.panel.requests(), 1)
		w.pass(2 * time.Second)
		require.Len(t, w.panel.requests(), 2)
	})
}

func TestParseRetryAfter(t *testing.T) {
	require.Equal(t, 90*time.Second, retryAfter("90"))
	require.Equal(t, maxRetryAfter, retryAfter("999999999999"))
	require.Zero(t, retryAfter("-5"))
	require.Zero(t, retryAfter("soon"))
	require.Zero(t, retryAfter(time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)))
	require.InDelta(t, float64(time.Minute), float64(retryAfter(time.Now().Add(time.Minute).UTC().Format(http.TimeFormat))), float64(2*time.Second))
}
