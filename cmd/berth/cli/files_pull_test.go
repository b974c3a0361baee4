package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFilesPull(t *testing.T) {
	const volume = "/volumes/3f2a91c0"
	f := newFakeAPI(t, map[string]string{
		"POST " + volume + "/pull":       `200 {"message":"Download started","pull_id":"p1"}`,
		"GET " + volume + "/pulls":       `200 {"pulls":[{"pull_id":"p1","url":"https://a/b","path":"mods/a","state":"failed","progress":{"bytes":1024,"total":null},"message":"the server answered 404"}]}`,
		"DELETE " + volume + "/pulls/p1": `200 {"message":"Download cancelled"}`,
	})
	out, _, err := command(t, f.env(), "files", "pull", "https://a/b", "3f2a91c0:mods/a")
	require.NoError(t, err)
	require.Equal(t, "3f2a91c0:mods/a: download started (p1)\n", out)
	_, _, err = command(t, f.env(), "files", "pull", "https://a/b", "3f2a91c0:mods/a", "--wait")
	require.ErrorContains(t, err, "the download is failed: the server answered 404")
	out, _, err = command(t, f.env(), "files", "pulls", "3f2a91c0:")
	require.NoError(t, err)
	for _, text := range []string{"p1", "failed", "1KiB", "mods/a", "the server answered 404", "https://a/b"} {
		require.Contains(t, out, text)
	}
	out, _, err = command(t, f.env(), "files", "pulls", "3f2a91c0:", "-o", "name")
	require.NoError(t, err)
	require.Equal(t, "p1\n", out)
	out, _, err = command(t, f.env(), "files", "pulls", "3f2a91c0:", "--cancel", "p1")
	require.NoError(t, err)
	require.Equal(t, "p1: cancelled\n", out)
	_, _, err = command(t, f.env(), "files", "pull", "https://a/b", "3f2a91c0:")
	require.Equal(t, exitUsage, ExitCode(err))
}

// TestFilesPullWaits: a wait goes on while the daemon is away, and an interrupt is none of
// its errors.
func TestFilesPullWaits(t *testing.T) {
	const pulls = "GET /volumes/3f2a91c0/pulls"
	pull := func(state string) string {
		return `200 {"pulls":[{"pull_id":"p1","url":"https://a/b","path":"a","state":"` + state + `","progress":{"bytes":5,"total":10},"message":""}]}`
	}
	f := newFakeAPI(t, map[string]string{"POST /volumes/3f2a91c0/pull": `200 {"pull_id":"p1"}`, pulls: `503 {"error":"not ready"}`})
	begin := func() (stop, wait func() error) {
		return run(t, func(ctx context.Context) error {
			root := NewRoot(Options{Environ: f.env()})
			root.SetArgs([]string{"files", "pull", "https://a/b", "3f2a91c0:a", "--wait"})
			return root.ExecuteContext(ctx)
		})
	}
	polls := func() (n int) {
		for _, request := range f.seen() {
			if strings.HasPrefix(request, pulls) {
				n++
			}
		}
		return n
	}
	_, wait := begin()
	require.Eventually(t, func() bool { return polls() >= 2 }, time.Minute, 10*time.Millisecond, "it asks again")
	f.set(pulls, pull("running"))
	before := polls()
	require.Eventually(t, func() bool { return polls() >= before+2 }, time.Minute, 10*time.Millisecond, "it asks again")
	f.set(pulls, pull("completed"))
	require.NoError(t, wait())

	f.set(pulls, pull("running"))
	before = polls()
	stop, _ := begin()
	require.Eventually(t, func() bool { return polls() > before }, time.Minute, 10*time.Millisecond, "it waits")
	require.Equal(t, exitInterrupted, ExitCode(stop()))
}
