package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

var quoted = regexp.MustCompile("`([^`]*)`")

// TestREADMENamesEveryKey compares the table of hack/docs/configuration.md with the code: every key,
// its default, and whether a reload changes it.
func TestREADMENamesEveryKey(t *testing.T) {
	text, err := os.ReadFile("../../hack/docs/configuration.md")
	require.NoError(t, err)
	type row struct{ value, changes string }
	rows := map[string]row{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		keys, values := quoted.FindAllStringSubmatch(cells[1], -1), quoted.FindAllStringSubmatch(cells[2], -1)
		for i, key := range keys {
			r := row{changes: strings.TrimSpace(cells[4])}
			if len(values) > 0 {
				r.value = values[min(i, len(values)-1)][1]
			}
			rows[key[1]] = r
		}
	}
	c := v1.Defaults()
	for key := range leaves(&c) {
		r, there := rows[key.key]
		require.True(t, there, "%s is missing", key.key)
		delete(rows, key.key)
		said := v1.Defaults()
		for other := range leaves(&said) {
			if other.key == key.key && !other.secret() {
				require.NoError(t, other.set(r.value), "%s: %q", key.key, r.value)
				require.True(t, equal(other.value, key.value), "%s: the default is %v, not %s", key.key, key.value, r.value)
			}
		}
		live := map[bool]string{true: "live", false: "restart"}[isLive(key.key, c, c)]
		require.Equal(t, live, r.changes, key.key)
	}
	require.Empty(t, rows, "these are no keys")
}
