package yamlfile_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"berth/cmd/berth/yamlfile"
)

func TestFromJSON(t *testing.T) {
	const text = `{"b":1,"a":{"list":[{"x":true},[],null,1.50],"none":{}},"text":"1","no":"no","day":"2026-01-02",
		"script":"one\ntwo: 3\n","control":"\u0007\u009b\u2028","emoji":"\ud83c\udfae","big":18446744073709551615}`
	got, err := yamlfile.FromJSON([]byte(text))
	require.NoError(t, err)
	require.Equal(t, `b: 1
a:
  list:
    - x: true
    - []
    - null
    - 1.50
  none: {}
text: "1"
"no": "no"
day: "2026-01-02"
script: |
  one
  two: 3
control: "\a\x9B\L"
emoji: "\U0001F3AE"
big: 18446744073709551615
`, string(got))
	var fromYAML any
	require.NoError(t, yaml.Unmarshal(got, &fromYAML))
	again, err := json.Marshal(fromYAML)
	require.NoError(t, err)
	require.JSONEq(t, text, string(again))

	for _, bad := range []string{"", "{", `{"a":`, "[1", "pong"} {
		_, err := yamlfile.FromJSON([]byte(bad))
		require.Error(t, err, bad)
	}
}
