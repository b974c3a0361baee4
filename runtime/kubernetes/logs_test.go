package kubernetes

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"

	"berth/runtime"
)

func TestLinesOfALog(t *testing.T) {
	const first, second = "2026-11-26T12:00:00.000000001Z", "2026-11-26T12:00:00.000000002Z"
	at := func(text string) time.Time {
		t, _ := time.Parse(time.RFC3339Nano, text)
		return t
	}
	long := strings.Repeat("x", maxPart)
	for _, tty := range []bool{false, true} {
		var got []runtime.Line
		log := first + " one\r\n" + second + " " + long + "y\n" + second + " \n" + second + " half"
		require.NoError(t, readLines(iotest.OneByteReader(strings.NewReader(log)), tty, func(l runtime.Line) error {
			got = append(got, l)
			return nil
		}))
		one := "one\r"
		if tty {
			one = "one"
		}
		part := maxPart - len(second) - 1 // the buffer has the time too
		require.Equal(t, []runtime.Line{
			{Time: at(first), Data: []byte(one)},
			{Time: at(second), Data: []byte(long[:part]), Partial: true},
			{Time: at(second), Data: []byte(long[part:] + "y")},
			{Time: at(second), Data: []byte{}},
			{Time: at(second), Data: []byte("half"), Partial: true},
		}, got)
	}
}

func TestErrorsOfALog(t *testing.T) {
	var broken errBroken
	each := func(runtime.Line) error { return nil }
	require.ErrorAs(t, readLines(strings.NewReader("no time\n"), false, each), &broken)
	cut := errors.New("cut")
	require.ErrorAs(t, readLines(iotest.ErrReader(cut), false, each), &broken)
	err := readLines(strings.NewReader("2026-11-26T12:00:00Z one\n"), false, func(runtime.Line) error { return cut })
	require.Equal(t, cut, err, "the error of the function that takes the lines is returned as it is")
}

// TestStreamThatEndsIsFollowedAgain: the kubelet of a run that goes on was restarted. That is reported with its next
// line, and not after the time for which an exit is awaited.
func TestStreamThatEndsIsFollowedAgain(t *testing.T) {
	pod := startedPod(t, runs)
	pod.UID = "1"
	r, _ := testEngine().recordOf(pod)
	streams := 0
	e := against(t, testEngine(), func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/log"):
			streams++
			fmt.Fprintln(w, begun.Format(time.RFC3339Nano), "one")
			if streams > 2 {
				fmt.Fprintln(w, begun.Add(time.Second).Format(time.RFC3339Nano), "two")
			}
		case r.URL.Query().Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/pods"):
			answerJSON(w, http.StatusOK, core1.PodList{Items: []core1.Pod{*pod}})
		case strings.Contains(r.URL.Path, "/nodes"):
			answerJSON(w, http.StatusOK, testNode("n1", core1.ConditionTrue))
		default:
			answerJSON(w, http.StatusOK, pod)
		}
	})
	var lines []string
	target := runtime.Target{ContainerID: r.ContainerID, StartedAt: startedAt(pod)}
	err := e.Logs(t.Context(), target, time.Time{}, func(l runtime.Line) error {
		lines = append(lines, string(l.Data))
		return nil
	})
	require.ErrorIs(t, err, errGoesOn)
	require.Equal(t, []string{"one"}, lines, "the next stream has the others")
}
