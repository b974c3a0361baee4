package doctor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

// find returns a check of the table.
func find(t *testing.T, name string) func(context.Context, *examination) Result {
	t.Helper()
	for _, c := range checks() {
		if c.name == name {
			return c.run
		}
	}
	t.Fatalf("there is no check %q", name)
	return nil
}

func TestRunReportsTheWorst(t *testing.T) {
	result := func(name string, r Result) check {
		return check{name, func(context.Context, *examination) Result { return r }}
	}
	e := newExamination(t.Context(), Options{Version: "1.2.3"})
	good, bad, worst := result("a", ok("fine")), result("b", warning("w", "do w")), result("c", failed("f", "do f"))
	require.Equal(t, Report{Version: "1.2.3", Status: OK, Results: []Result{{"a", OK, "fine", ""}}}, e.run(t.Context(), []check{good}))
	require.Equal(t, Warn, e.run(t.Context(), []check{good, bad, good}).Status)
	r := e.run(t.Context(), []check{worst, bad, good})
	require.Equal(t, Fail, r.Status)
	require.Equal(t, []Result{{"c", Fail, "f", "do f"}, {"b", Warn, "w", "do w"}, {"a", OK, "fine", ""}}, r.Results)
}

func TestRunDoesNotWaitForHungChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		e := newExamination(t.Context(), Options{Time: 5 * time.Second})
		began := time.Now()
		hung := check{"hung", func(context.Context, *examination) Result { <-hang; return ok("") }}
		quick := check{"quick", func(context.Context, *examination) Result { return ok("fine") }}
		slow := check{"slow", func(ctx context.Context, _ *examination) Result { <-ctx.Done(); return failed("too slow", "wait") }}
		r := e.run(t.Context(), []check{hung, quick, slow, hung})
		require.Equal(t, 6*time.Second, time.Since(began), "all together")
		require.Equal(t, []string{"did not end within 6s", "fine", "too slow", "did not end within 6s"},
			[]string{r.Results[0].Message, r.Results[1].Message, r.Results[2].Message, r.Results[3].Message})
		close(hang)
	})
}

// TestEngineIsAskedOnce: the checks share one answer.
func TestEngineIsAskedOnce(t *testing.T) {
	socket, asked := newFakeEngine(t)
	o := Options{}
	o.Config.Config.Docker.Host = socket
	e := newExamination(t.Context(), o)
	for range 3 {
		info, err := e.engine()
		require.NoError(t, err)
		require.Equal(t, runtime.EngineInfo{Version: "28.5.2", API: "1.51", StorageDriver: "overlay2", Firewall: "iptables"}, info)
	}
	require.EqualValues(t, 1, asked.Load())
}
