package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedact(t *testing.T) {
	r := newRedactor([]string{"", "abc", `pa"ss/wo rd`, "abcdef"})
	for text, want := range map[string]string{
		"x abc y abcdef z":                           "x *** y *** z",
		`{"p":"pa\"ss/wo rd"}`:                       `{"p":"***"}`,
		"?x=pa%22ss%2Fwo+rd":                         "?x=***",
		"/pa%22ss%2Fwo%20rd/":                        "/***/",
		"a berth_0123456789abcdef0123456789abcdef b": "a *** b",
		"Authorization: Bearer qwertz":               "Authorization: Bearer ***",
		"https://user:pw@panel.example/a":            "https://***@panel.example/a",
		"GET /ws?token=qwertz&tail=5":                "GET /ws?token=***&tail=5",
		`registry password: "hunter2"`:               `registry password: "***"`,
		"berth_store_writable 1":                     "berth_store_writable 1",
		`{"remote":{"token":"qwertz"}}`:              `{"remote":{"token":"***"}}`,
		"nothing is hidden here":                     "nothing is hidden here",
	} {
		require.Equal(t, want, string(r.redact([]byte(text))))
	}
}
