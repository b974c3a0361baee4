package yamlfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type inner struct {
	Text string `json:"text"`
}

type embedded struct {
	List []string `json:"list,omitempty"`
}

type outer struct {
	embedded
	Inner   inner            `json:"inner"`
	Pointer *string          `json:"pointer"`
	Objects []inner          `json:"objects"`
	Map     map[string]inner `json:"map"`
	Time    time.Time        `json:"time"`
}

func newDecoder(aliases bool) Decoder {
	return Decoder{Unknown: "is unknown", Aliases: aliases, Set: func(into reflect.Value, scalar Scalar) error {
		if into.Kind() != reflect.String {
			return errors.New("cannot be set")
		}
		into.SetString(scalar.Text())
		return nil
	}}
}

func TestDecode(t *testing.T) {
	var got outer
	faults := newDecoder(false).Decode([]byte("list: [a, 1.10]\ninner: {text: t}\npointer: 2026-01-02\nobjects:\n- {text: o}\nmap: {k: {text: m}}\ntime:\n"), &got)
	require.Empty(t, faults)
	day := "2026-01-02"
	require.Equal(t, outer{embedded: embedded{[]string{"a", "1.10"}}, Inner: inner{"t"}, Pointer: &day,
		Objects: []inner{{"o"}}, Map: map[string]inner{"k": {"m"}}}, got)
}

func TestDecodeErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1":                          "a: is unknown (line 1)",
		"inner:\n  text: a\n  text: b":  "inner.text: is set twice (line 3)",
		"inner: a":                      "inner: must be a mapping (line 1)",
		"list: a":                       "list: must be a list (line 1)",
		"list: [[a]]":                   "list[0]: must be a single value (line 1)",
		"time: now":                     "time: cannot be set (line 1)",
		"map: {k: {t: a}}":              "map.k.t: is unknown (line 1)",
		"pointer: &a b\ninner: *a":      "inner: must be a mapping (line 2)",
		"pointer: &a b\nlist: [*a]":     "list[0]: must be a single value (line 2)",
		"inner: {<<: {text: a}}":        "inner.<<: is unknown (line 1)",
		"a: b: c":                       "mapping values are not allowed in this context",
		"list: [a]\n---\nlist: [b]":     "contains more than one document",
		"b: 1\na: 2\ninner: {text: []}": "b: is unknown (line 1); a: is unknown (line 2); inner.text: must be a single value (line 3)",
	} {
		var into outer
		require.EqualError(t, newDecoder(false).Decode([]byte(text), &into), want, text)
	}
}

func TestDecodeAliases(t *testing.T) {
	const text = `
objects: [&a {text: a}, &b {text: b}, *a, {<<: *b}, {<<: [*b, *a]}, {<<: *a, text: own}]
`
	var got outer
	require.Empty(t, newDecoder(true).Decode([]byte(text), &got))
	require.Equal(t, []inner{{"a"}, {"b"}, {"a"}, {"b"}, {"b"}, {"own"}}, got.Objects)
}

func TestDecodeBoundsAliases(t *testing.T) {
	require.EqualError(t, newDecoder(true).Decode([]byte("list: &a [*a]"), &outer{}), `the anchor "a" contains itself (line 1)`)
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10))
	}
	require.EqualError(t, newDecoder(true).Decode([]byte(bomb.String()), &outer{}), "its aliases expand to more than 100000 values")
}

func FuzzDecode(f *testing.F) {
	f.Add("list: [a]\ninner: {text: t}")
	f.Add("objects: [&a {text: a}, {<<: *a}, {<<: [*a]}]")
	f.Add("? {a: b}\n: c")
	f.Add("&a [*a]")
	f.Fuzz(func(_ *testing.T, text string) {
		for _, aliases := range []bool{false, true} {
			_ = newDecoder(aliases).Decode([]byte(text), &outer{}).Error()
		}
	})
}
