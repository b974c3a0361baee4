package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecodeSpec(t *testing.T) {
	spec, err := decodeSpec([]byte(`
internal_id: "123"
image: a:1.10
start_pattern: 2026-01-02
install_script: null
user: ~
tty: false
env: {PORT: "25565", DAY: 2026-01-02, EMPTY: ""}
limits: {memory: 1e9, cpu: .5, io_weight: 100, swap: 1_000}
stop: {timeout: 90, signal: INT}
install_timeout: 1h
ports: [{<<: &base {ip: 0.0.0.0, port: 1}, protocol: tcp}, {<<: *base, protocol: udp}]
`))
	require.NoError(t, err)
	got, err := json.Marshal(spec)
	require.NoError(t, err)
	require.JSONEq(t, `{"internal_id":"123","image":"a:1.10","start_pattern":"2026-01-02","tty":false,
		"env":{"PORT":"25565","DAY":"2026-01-02","EMPTY":""},
		"limits":{"memory":1000000000,"cpu":0.5,"io_weight":100,"swap":1000},"stop":{"timeout":"1m30s","signal":"INT"},"install_timeout":"1h0m0s",
		"ports":[{"ip":"0.0.0.0","port":1,"protocol":"tcp"},{"ip":"0.0.0.0","port":1,"protocol":"udp"}]}`, string(got))
}

// TestDecodeSpecChangesNoText: YAML reads 1.10 as 1.1, 022 as 18 and yes as true, so that a text which
// looks like one of them must be in quotes.
func TestDecodeSpecChangesNoText(t *testing.T) {
	for text, field := range map[string]string{"image: 1.10": "image", "volume_id: 0x10": "volume_id", "cpuset: yes": "cpuset",
		"env: {VERSION: 1.20}": "env.VERSION", "env: {UMASK: 022}": "env.UMASK", "stop: {signal: 15}": "stop.signal"} {
		_, err := decodeSpec([]byte(text))
		require.EqualError(t, err, field+": must be a text: put it in quotes", text)
	}
}

func TestDecodeSpecNamesField(t *testing.T) {
	for text, want := range map[string]string{
		"image: a\nimgae: b":              "imgae: is not a field of a container",
		"Image: a":                        "Image: is not a field of a container",
		"image: [a]":                      "image: must be a single value",
		"image: a\nimage: b":              `line 2: key "image" already set in map`,
		"limits:\n  memory: 64MiB":        "limits.memory: must be a whole number",
		"limits: {memory: 1.5}":           "limits.memory: must be a whole number",
		"limits: {memory: '1'}":           "limits.memory: must be a whole number",
		"limits: {io_weight: 70000}":      "limits.io_weight: must be a whole number",
		"limits: {cpu: many}":             "limits.cpu: must be a number",
		"tty: 1":                          "tty: must be true or false",
		"stop: {timeout: soon}":           "stop.timeout: must be a duration such as 90s, 1h30m or 7d, or a number of seconds",
		"started_at: today":               "started_at: must be a time such as 2006-01-02T15:04:05Z",
		"ports:\n- {ip: a}\n- {port: x}":  "ports[1].port: must be a whole number",
		"ports: {}":                       "ports: must be a list",
		"env: [a]":                        "env: must be a mapping",
		"- a":                             "must be a mapping",
		"ports: &p [*p]":                  `anchor 'p' value contains itself`,
		"tty: 1\nlimits: {memory: false}": "limits.memory: must be a whole number",
	} {
		_, err := decodeSpec([]byte(text))
		require.EqualError(t, err, want, text)
	}
}

// TestDecodeSpecBoundsAliases: aliases that multiply are refused.
func TestDecodeSpecBoundsAliases(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10))
	}
	_, err := decodeSpec([]byte(bomb.String()))
	require.ErrorContains(t, err, "excessive aliasing")
}

// TestDecodeSpecOfPrintedContainer reads what `berth containers <id> -o json` prints.
func TestDecodeSpecOfPrintedContainer(t *testing.T) {
	spec, err := decodeSpec([]byte(oneContainer))
	require.NoError(t, err)
	require.Equal(t, "mc", spec.InternalID)
	require.Len(t, spec.Ports, 2)
}
