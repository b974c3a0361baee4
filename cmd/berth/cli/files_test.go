package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFilesCommands(t *testing.T) {
	const list = `200 {"files":[{"name":"world","type":"directory","mode":"0755"},{"name":"a.txt","type":"file","size":2048,"mode":"0644"},` +
		`{"name":"l","type":"file","mode":"0777","symlink":true}]}`
	const container = "GET /containers/mc"
	mc := "200 " + oneContainer // its volume is v
	for line, x := range map[string]exchange{
		"files ls 3f2a91c0:":       {map[string]string{"GET /volumes/3f2a91c0/files": list}, "", "world/ 0644 2KiB"},
		"files ls mc:/world/":      {map[string]string{container: mc, "GET /volumes/v/files?path=world": list}, container + "\nGET /volumes/v/files?path=world", "l@"},
		"files rm mc:a.txt":        {map[string]string{container: mc, "GET /volumes/v/files": list, "DELETE /volumes/v/files?path=a.txt": "200 {}"}, container + "\nGET /volumes/v/files\nDELETE /volumes/v/files?path=a.txt", "mc:a.txt: deleted"},
		"files rm -r 3f2a91c0:w/x": {map[string]string{"DELETE /volumes/3f2a91c0/files?path=w%2Fx": "200 {}"}, "", "deleted"},
	} {
		t.Run(line, func(t *testing.T) { x.check(t, line) })
	}
}

func TestFilesRefusals(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /containers/mc": "200 " + oneContainer, "GET /volumes/3f2a91c0/files": `200 {"files":[{"name":"world","type":"directory"}]}`})
	for args, want := range map[string]string{
		"ls mc":                         `"mc" must be <id>:<path>`,
		"ls :x":                         `":x" must be <id>:<path>`,
		"cat mc:a/../b":                 "mc:a/../b: Invalid path: path traversal detected",
		"rm mc:":                        "mc: names the whole volume",
		"rm -r mc:./":                   "mc:./ names the whole volume",
		"rm 3f2a91c0:world":             "is a folder: -r deletes it",
		"rm 3f2a91c0:nothing":           "3f2a91c0:nothing: Path not found: nothing",
		"put - 3f2a91c0:w/":             "name the file that standard input is written to",
		"put /does/not/exist 3f2a91c0:": "no such file",
		"get 3f2a91c0:world -":          "only a file can be written to standard output",
		"get nope:world":                "nope: Route not found",
	} {
		_, _, err := command(t, f.env(), append([]string{"files"}, strings.Fields(args)...)...)
		require.ErrorContains(t, err, want)
	}
}

// TestFileNameOfTwoLines: a tenant's file cannot look like another one to a script.
func TestFileNameOfTwoLines(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /volumes/3f2a91c0/files": `200 {"files":[{"name":"a\n3f2a91c0:world","type":"file"},{"name":"b","type":"file"}]}`})
	out, errOut, err := command(t, f.env(), "files", "ls", "3f2a91c0:", "-o", "name")
	require.NoError(t, err)
	require.Equal(t, "3f2a91c0:b\n", out)
	require.Equal(t, `berth: "3f2a91c0:a\n3f2a91c0:world" is left out: it is not one line`+"\n", errOut)
}
