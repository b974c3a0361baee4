package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestCheckPath(t *testing.T) {
	long := strings.Repeat("x", v1.MaxComponent)
	deep := strings.Repeat("a/", v1.MaxPath/2-1) + "aa"
	for _, path := range []string{".", "a", "a/b.txt", "./a", "a//b", "a/", ".hidden", "a.b", "ä b", `a\b`, "1:a", "ab:c", ":a", long, long + "/" + long, deep} {
		require.NoError(t, v1.CheckPath(path), path)
	}
	for _, path := range []string{
		"", "..", "../a", "a/..", "a/../b", "a..b", "...", // nothing with two dots, wherever
		"/", "/etc/passwd", "//a", `\`, `\\host\share`,
		"c:", "C:/a", `z:\a`,
		"a\x00b", "a\nb", "a\x7f", "a\u0085b", "a\xffb",
		long + "x", "a/" + long + "x", deep + "a",
	} {
		require.ErrorIs(t, v1.CheckPath(path), v1.ErrInvalidPath, "%q", path)
	}
}
