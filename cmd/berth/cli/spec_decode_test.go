package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	"berth/cmd/berth/yamlfile"
)

// decodeText decodes the only document of a file.
func decodeText(text []byte) (client.ContainerSpec, error) {
	list, faults := yamlfile.Documents(text)
	if faults != nil {
		return client.ContainerSpec{}, faults
	}
	return decodeSpec(list[0])
}

func TestDecodeSpecKeepsStrings(t *testing.T) {
	_, err := decodeText([]byte("base: &base {ip: 0.0.0.0}\nports: [{<<: *base, port: 1}]"))
	require.EqualError(t, err, "base: is not a field of a container (line 1)")
	spec, err := decodeText([]byte(`
internal_id: 123
image: 1.10
start_pattern: 2026-01-02
volume_id: 0x10
install_script: null
user: ~
cpuset: yes
tty: false
env: {PORT: 25565, DEBUG: true, DAY: 2026-01-02, EMPTY: ""}
limits: {memory: 1e9, cpu: .5, io_weight: 100, swap: 1_000}
stop: {timeout: 90, signal: 15}
install_timeout: 1h
ports: [&base {ip: 0.0.0.0, protocol: tcp, port: 1}, {<<: *base, protocol: udp}]
`))
	require.NoError(t, err)
	got, err := json.Marshal(spec)
	require.NoError(t, err)
	require.JSONEq(t, `{"internal_id":"123","image":"1.10","start_pattern":"2026-01-02","volume_id":"0x10","cpuset":"yes","tty":false,
		"env":{"PORT":"25565","DEBUG":"true","DAY":"2026-01-02","EMPTY":""},
		"limits":{"memory":1000000000,"cpu":0.5,"io_weight":100,"swap":1000},"stop":{"timeout":"1m30s","signal":"15"},"install_timeout":"1h0m0s",
		"ports":[{"ip":"0.0.0.0","port":1,"protocol":"tcp"},{"ip":"0.0.0.0","port":1,"protocol":"udp"}]}`, string(got))
}

func TestDecodeSpecNamesLineAndField(t *testing.T) {
	for text, want := range map[string]string{
		"image: a\nimgae: b":              "imgae: is not a field of a container (line 2)",
		"image: [a]":                      "image: must be a single value (line 1)",
		"image: a\nimage: b":              "image: is set twice (line 2)",
		"limits:\n  memory: 64MiB":        "limits.memory: must be a whole number (line 2)",
		"limits: {memory: 1.5}":           "limits.memory: must be a whole number (line 1)",
		"limits: {memory: -.inf}":         "limits.memory: must be a whole number (line 1)",
		"limits: {memory: '1'}":           "limits.memory: must be a whole number (line 1)",
		"limits: {io_weight: 70000}":      "limits.io_weight: must be a whole number (line 1)",
		"limits: {cpu: many}":             "limits.cpu: must be a number (line 1)",
		"tty: 1":                          "tty: must be true or false (line 1)",
		"stop: {timeout: soon}":           "stop.timeout: must be a duration such as 90s, 1h30m or 7d, or a number of seconds (line 1)",
		"started_at: today":               "started_at: must be a time such as 2006-01-02T15:04:05Z (line 1)",
		"ports:\n- {ip: a}\n- {port: x}":  "ports[1].port: must be a whole number (line 3)",
		"ports: {}":                       "ports: must be a list (line 1)",
		"env: [a]":                        "env: must be a mapping (line 1)",
		"- a":                             "must be a mapping (line 1)",
		"ports: &p [*p]":                  `the anchor "p" contains itself (line 1)`,
		"tty: 1\nlimits: {memory: false}": "tty: must be true or false (line 1); limits.memory: must be a whole number (line 2)",
	} {
		_, err := decodeText([]byte(text))
		require.EqualError(t, err, want, text)
	}
}

// TestDecodeSpecOfPrintedContainer reads what `berth containers <id> -o json` prints.
func TestDecodeSpecOfPrintedContainer(t *testing.T) {
	spec, err := decodeText([]byte(oneContainer))
	require.NoError(t, err)
	require.Equal(t, "mc", spec.InternalID)
	require.Len(t, spec.Ports, 2)
}
