package v1

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedactedURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://mods.example/a%2Fb.zip":         "https://mods.example/a%2Fb.zip",
		"http://mods.example":                    "http://mods.example",
		"https://s3.example:9000/a?X-Sig=secret": "https://s3.example:9000/a?***",
		"https://mods.example/a#secret":          "https://mods.example/a#***",
		"https://u:p@ss@mods.example/@a?b#c":     "https://***@mods.example/@a?***#***",
		"https://mods.example/%zz?secret":        "***",
	} {
		require.Equal(t, want, PullSpec{PullRequest: PullRequest{URL: url}}.RedactedURL())
	}
}
