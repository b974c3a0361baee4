package v1_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestParsePath(t *testing.T) {
	const all, some, none = 3, 2, 1 // all paths; those that are not in a field of the interface; paths of SFTP
	const traversal, tooLong = "Invalid path: path traversal detected", "Invalid path: it is longer than 4096 bytes"
	const longName = "Invalid path: a name in it is longer than 255 bytes"
	long := strings.Repeat("x", v1.MaxComponent)
	deep := strings.Repeat("a/", v1.MaxPath/2-1) + "aa"
	for path, allowed := range map[string]int{
		".": all, "a": all, "a/b.txt": all, "./a": all, "a//b": all, "a/": all, ".hidden": all, "a.b": all, "ä b": all,
		`a\b`: all, "1:a": all, "ab:c": all, ":a": all, "./C:a": all, `./\a`: all,
		long: all, long + "/" + long: all, deep: all,
		`a\x0ab`: all, `\xff`: all, `dir/\xc2\x85`: all, `a\x5cx0a`: all, `a\xZZ`: all, `a\x`: all, `a\x0A`: all,
		"a..b": some, "...": some, "..a": some, "a/[...slug].tsx": some,
		`\`: none, `\\host\share`: none, "c:": none, "C:/a": none, `z:\a`: none, // as text
		"a\nb": none, "a\x7f": none, "a\u0085b": none, "a\xffb": none,
		`a\x41`: none, `a\x2f`: none, `a\x5c`: none, `\xc3\xa4`: none, `a\x00`: none, // escapes that EscapePath never makes
	} {
		_, err := v1.ParsePath(path, v1.NoDots)
		require.Equal(t, allowed == all, err == nil, "%q", path)
		_, err = v1.ParsePath(path, v1.DotsInNames)
		require.Equal(t, allowed >= some, err == nil, "%q", path)
		require.NoError(t, v1.CheckPath(path), "%q", path)
	}
	for path, text := range map[string]string{
		"": traversal, "..": traversal, "../a": traversal, "a/..": traversal, "a/../b": traversal,
		"/": traversal, "/etc/passwd": traversal, "//a": traversal, "a\x00b": traversal,
		long + "x": longName, "a/" + long + "x": longName, deep + "a": tooLong,
	} {
		_, strict := v1.ParsePath(path, v1.NoDots)
		_, err := v1.ParsePath(path, v1.DotsInNames)
		for _, err := range []error{strict, err, v1.CheckPath(path)} {
			var refusal *v1.Error
			require.True(t, errors.As(err, &refusal), "%q", path)
			require.Equal(t, v1.Error{Code: v1.InvalidPath, Message: text}, *refusal, "%q", path)
		}
	}
}

// FuzzEscapePath: each path has one text, each text that is accepted is that of one path, and an
// ordinary path is its own.
func FuzzEscapePath(f *testing.F) {
	for path, text := range map[string]string{
		"plain": "plain", "ä/日本": "ä/日本", `back\slash`: `back\slash`, "50%20": "50%20", "\ufffd": "\ufffd",
		"a\nb": `a\x0ab`, "\xff": `\xff`, "\u0085": `\xc2\x85`, `a\x0ab`: `a\x5cx0ab`, `\\x01` + "\x01": `\\x5cx01\x01`,
		`\x` + "\xff": `\x\xff`, "\x82\xa0.txt": `\x82\xa0.txt`,
	} {
		require.Equal(f, text, v1.EscapePath(path))
		f.Add(path)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, path string) {
		text := v1.EscapePath(path)
		require.NotContains(t, text, "\n")
		if v1.CheckPath(path) == nil {
			got, err := v1.ParsePath("./"+text, v1.DotsInNames)
			if len(path)+len("./") <= v1.MaxPath {
				require.NoError(t, err)
				require.Equal(t, "./"+path, got)
			}
		}
		if got, err := v1.ParsePath(path, v1.DotsInNames); err == nil {
			require.Equal(t, path, v1.EscapePath(got))
		}
	})
}
