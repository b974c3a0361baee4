package cli

import (
	"testing"

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
