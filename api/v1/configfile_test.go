package v1_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "1", "SELF": "${A}", "": "empty", "LONG": strings.Repeat("x", v1.MaxConfigValue)}
	for value, want := range map[string]string{
		"": "", "a": "a", "${A}": "1", "$A": "$A", "$${A}": "${A}", "$$${A}": "$${A}", "${A}${A}": "11", "${SELF}": "${A}", "${NO}": "${NO}",
		"${": "${", "${A": "${A", "${}": "empty", "${{A}}": "${{A}}", "x${A}y${NO}z$${A}": "x1y${NO}z${A}", "${LONG}": env["LONG"], "ä${A}": "ä1",
	} {
		got, ok := v1.Expand(value, env)
		require.True(t, ok, value)
		require.Equal(t, want, got, value)
	}
	for _, value := range []string{"${LONG}x", "x${LONG}", "${LONG}${A}", "${A}" + env["LONG"], env["LONG"] + "x"} {
		_, ok := v1.Expand(value, env)
		require.False(t, ok)
	}
}

// TestExpandTemplate: the groups of an expression survive, and a variable has none.
func TestExpandTemplate(t *testing.T) {
	env := map[string]string{"IP": "10.0.0.1", "PRICE": "$1 and ${2}"}
	for value, want := range map[string]string{"${IP}$2": "10.0.0.1$2", "${1}${IP}": "${1}10.0.0.1", "${PRICE}$1": "$$1 and $${2}$1", "$${IP}": "$${IP}", "$$1": "$$1"} {
		c, err := v1.ConfigFile{Edits: []v1.ConfigEdit{{Key: "a", Value: value, If: "regex:x"}}}.Expanded(env)
		require.NoError(t, err)
		require.Equal(t, want, c.Edits[0].Value)
	}
	c, err := v1.ConfigFile{Edits: []v1.ConfigEdit{{Key: "a", Value: "${PRICE}$${IP}$1", If: "x"}}}.Expanded(env)
	require.NoError(t, err)
	require.Equal(t, "$1 and ${2}${IP}$1", c.Edits[0].Value)
}

// TestExpandIsBounded: a request of 255 kB names a long variable so often that the whole text
// has gigabytes.
func TestExpandIsBounded(t *testing.T) {
	env := map[string]string{"A": strings.Repeat("x", 120_000), "B": strings.Repeat("x", 60_000)}
	c := v1.ConfigFile{Format: "text", Set: map[string]string{"a": strings.Repeat("${A}", 16_000)}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := c.Expanded(env)
	require.EqualError(t, err, "a: must be at most 65536 bytes with its variables replaced")
	c.Set = map[string]string{}
	for i := range 500 {
		c.Set["k"+strings.Repeat("y", i)] = "${B}"
	}
	_, err = c.Expanded(env)
	require.EqualError(t, err, "the keys and values must be at most 524288 bytes with their variables replaced")
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}
