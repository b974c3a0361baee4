package configfile

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEdits shows what edits can that a set cannot.
func TestEdits(t *testing.T) {
	for _, c := range []struct {
		format, before string
		edits          []Edit
		want           string // or an error
	}{
		{"json", `{"a": 1}`, []Edit{{"z", "1", ""}, {"b", "2", ""}, {"a", "3", ""}, {"a", "4", ""}}, `{"a": 4,"z": 1,"b": 2}`},
		{"yaml", "a: x\n", []Edit{{"a", "y", "x"}, {"a", "z", "y"}, {"a", "w", "x"}, {"b", "1", "x"}}, "a: z\n"},
		{"yaml", "s:\n  a: {ip: localhost:1, p: 1}\n  b: {ip: 10.0.0.1:2}\n  c: {ip: localhost}\n", []Edit{{"s.*.ip", "172.18.0.1$2", `regex:^(127\.0\.0\.1|localhost)(:\d{1,5})?$`}},
			"s:\n  a: {ip: \"172.18.0.1:1\", p: 1}\n  b: {ip: 10.0.0.1:2}\n  c: {ip: \"172.18.0.1\"}\n"},
		{"json", `{"l": [{"a": 1}, {"b": [{"c": 2}, {}]}], "*": {"x": 1}, "x[0]": 1}`, []Edit{{"l.*.a", "7", ""}, {"l[1].b.*.c", "8", ""}, {`\*.x`, "9", ""}, {`x\[0]`, "2", ""}},
			`{"l": [{"a": 7}, {"b": [{"c": 8}, {"c": 8}],"a": 7}], "*": {"x": 9}, "x[0]": 2}`},
		{"json", `{"a": [[1, 2], [3]]}`, []Edit{{"a[0][1]", "5", ""}, {"a.1[0]", "6", "3"}, {"n[0].x", "y", ""}}, `{"a": [[1, 5], [6]],"n": [{"x": "y"}]}`},
		{"json", `{"on": false, "n": null, "t": "false"}`, []Edit{{"on", "1", "false"}, {"n", "1", "null"}, {"t", "1", "false"}}, `{"on": true, "n": 1, "t": "1"}`},
		{"yaml", "a: &x {p: 1}\nb: *x\n", []Edit{{"b.*", "2", ""}}, "b: is an alias, and a value in it would change elsewhere too"},
		{"yaml", "a: &x 1\nb: *x\nc: {d: 5}\n", []Edit{{"b", "2", "1"}, {"c.*.d", "1", ""}, {"b.*", "3", ""}}, "a: &x 1\nb: 2\nc: {d: 5}\n"},
		{"yaml", "", []Edit{{"a.*.b", "2", ""}}, ""},
		{"properties", "ip=1.2.3.4:5\n", []Edit{{"ip", "${1}.0", `regex:(\d+)\.\d+`}, {"x", "y", "z"}}, "ip=1.0.3.0:5\n"},
		{"ini", "[s]\nIP=\"a\"\n", []Edit{{"s.ip", "b", "a"}}, "[s]\nIP=\"b\"\n"},
		{"xml", "<a><b>1</b><c><b>2</b></c><b x='1'>1</b></a>", []Edit{{"/a/b", "3", "1"}, {"/a/*/b", "4", ""}, {"/a/b/@x", "2", "1"}, {"/a/z/*", "5", ""}}, "<a><b>3</b><c><b>4</b></c><b x='2'>3</b></a>"},
		{"xml", "<a><b/><b/></a>", []Edit{{"/a/*[2]", "2", ""}, {"/a/b/@c", "1", ""}}, `<a><b c="1"/><b c="1">2</b></a>`},
		{"xml", "", []Edit{{"/a/b", "1", "x"}}, ""},
		{"json", `{"a": "xxx"}`, []Edit{{"a", "y", "regex:("}}, "a: the condition is no RE2 expression: missing closing ): `(`"},
		{"json", `{"a": "xxx"}`, []Edit{{"a", "y", "regex:" + strings.Repeat("x{1000}", 11)}}, "a: the expression of the condition is too large"},
		{"json", `{"a": "` + strings.Repeat("x", maxConditionOld+1) + `"}`, []Edit{{"a", "y", "regex:x"}}, "a: the value is longer than 16384 bytes, too long for an expression"},
		{"json", `{"a": "` + strings.Repeat("x", maxMatches+1) + `"}`, []Edit{{"a", "y", "regex:x"}}, "a: the expression matches more than 1000 times"},
		{"json", `{"a": "` + strings.Repeat("x", maxMatches) + `"}`, []Edit{{"a", strings.Repeat("y", 60_000), "regex:x"}}, "a: " + errSize.Error()},
	} {
		got, err := Apply(c.format, []byte(c.before), Change{Edits: c.edits})
		if err != nil {
			got = []byte(err.Error())
		}
		require.Equal(t, c.want, string(got), "%s %v", c.before, c.edits)
	}
	got, err := Apply("text", []byte("a 1\n"), Change{Edits: []Edit{{"a", "a 2", ""}, {"b", "b 1", ""}}, Lines: OnlyReplace})
	require.NoError(t, err)
	require.Equal(t, "a 2\n", string(got))
}

// TestHostileEdits: keys that lead to many values, and expressions that take long.
func TestHostileEdits(t *testing.T) {
	many := `{"a": [` + strings.Repeat(`{"b": "xxxxxxxxxxxxxxxxxxxxxxxxxxxx"},`, 9000) + `1]}`
	edits := make([]Edit, 500)
	for i := range edits {
		edits[i] = Edit{"a.*.b", "y", ""}
	}
	began := cpuTime(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	long := strings.Repeat("y", 60_000) // for each of 9,000 values
	for _, condition := range []string{"", "regex:^x"} {
		_, err := Apply("json", []byte(many), Change{Edits: []Edit{{"a.*.b", long, condition}}})
		require.ErrorIs(t, err, errSize)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
	_, err := Apply("json", []byte(many), Change{Edits: edits})
	require.ErrorIs(t, err, errFound)
	_, err = Apply("json", []byte(many), Change{Edits: []Edit{{"a.*.b", "y", "regex:(x+x+)+" + strings.Repeat("x{1000}", 9)}}})
	require.ErrorIs(t, err, errWork)
	_, err = Apply("xml", []byte("<a>"+strings.Repeat("<b/>", 15_000)+"</a>"), Change{Edits: []Edit{{"/a/b", "y", ""}}})
	require.ErrorIs(t, err, errFound)
	_, err = Apply("xml", []byte("<a>"+strings.Repeat("<b/>", 9_000)+"</a>"), Change{Edits: []Edit{{"/a/b", "y", ""}}})
	require.NoError(t, err)
	require.Less(t, cpuTime(t)-began, 8*time.Second)
}

// TestNULBytes: what may be UTF-16 without a mark, or no text at all, is refused in every format.
func TestNULBytes(t *testing.T) {
	for _, format := range Formats() {
		key := map[string]string{"xml": "/a"}[format]
		for _, content := range [][]byte{utf16Of("\xFF\xFE", "a=1\r\n")[2:], utf16Of("\xFE\xFF", "a=1\r\n")[2:], []byte("a=1\n\x00"), utf16Of("\xFF\xFE", "a\x00")} {
			_, err := applySet(format, content, object{key + "a": "2"})
			require.ErrorIs(t, err, errNUL, format)
		}
	}
}
