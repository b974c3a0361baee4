package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// row is a request and its expected answer.
type row struct {
	request string // "POST /network/ports"
	body    string // JSON; empty: no body
	status  int
	want    string // JSON that the answer must contain; "*" matches any value that is not empty
}

// walk sends the rows one after another. It replaces names in braces by values.
func walk(t *testing.T, b *berthtest.Berth, names map[string]string, rows []row) {
	t.Helper()
	var pairs []string
	for name, value := range names {
		pairs = append(pairs, "{"+name+"}", value)
	}
	fill := strings.NewReplacer(pairs...).Replace
	for _, r := range rows {
		method, path, _ := strings.Cut(fill(r.request), " ")
		var body any
		if r.body != "" {
			body = fill(r.body)
		}
		got := b.Do(t, method, path, body)
		line := fmt.Sprintf("%s %s %v: %d %s", method, path, body, got.Status, got.Body)
		require.Equal(t, r.status, got.Status, line)
		holds(t, fill(r.want), got.Body, line)
	}
}

func holds(t *testing.T, want string, got []byte, line string) {
	t.Helper()
	var wanted, have any
	require.NoError(t, json.Unmarshal([]byte(want), &wanted), want)
	require.NoError(t, json.Unmarshal(got, &have), line)
	require.Empty(t, missing("", wanted, have), line)
}

// missing describes the first place where have does not contain want; "" if there
// is none.
func missing(at string, want, have any) string {
	switch want := want.(type) {
	case map[string]any:
		return missingField(at, want, have)
	case []any:
		list, _ := have.([]any)
		if len(list) != len(want) {
			return fmt.Sprintf("%s has %d elements, not %d", at, len(list), len(want))
		}
		for i := range want {
			if m := missing(fmt.Sprintf("%s[%d]", at, i), want[i], list[i]); m != "" {
				return m
			}
		}
		return ""
	}
	if want == "*" && have != nil && have != "" || want == have {
		return ""
	}
	return fmt.Sprintf("%s is %v, not %v", at, have, want)
}

func missingField(at string, want map[string]any, have any) string {
	fields, _ := have.(map[string]any)
	for name, value := range want {
		found, there := fields[name]
		if !there {
			return at + "." + name + " is missing"
		}
		if m := missing(at+"."+name, value, found); m != "" {
			return m
		}
	}
	return ""
}

// wrong returns the body of an error with this text.
func wrong(text string) string { return fmt.Sprintf(`{"error": %q}`, text) }
