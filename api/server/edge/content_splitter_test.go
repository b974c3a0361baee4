package edge

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// written is the decoded body of a file.
type written struct {
	Path    string `json:"path" wire:"required"`
	Content string `json:"content" wire:"required"`
}

// whole decodes a body at once.
func whole(raw string) (written, string) {
	var f v1.FieldErrors
	var body written
	unmarshal([]byte(raw), &body, &f)
	return body, faultsOf(&f)
}

// split decodes a body after its content was split off.
func split(t *testing.T, raw string) (written, string) {
	t.Helper()
	content := &spool{dir: t.TempDir(), limit: 1 << 20, reserve: func(int64) error { return nil }}
	defer content.Close()
	s := contentSplitter{from: bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(raw)), 16), content: content, most: 1 << 20}
	left, err := s.split()
	var f v1.FieldErrors
	var fault badJSON
	var body written
	if errors.As(err, &fault) {
		f.Add("body", "%s", fault)
		return body, faultsOf(&f)
	}
	require.NoError(t, err)
	unmarshal(left, &body, &f)
	if !f.Any() {
		var text strings.Builder
		r, err := content.reader()
		require.NoError(t, err)
		_, err = bufio.NewReader(r).WriteTo(&text)
		require.NoError(t, err)
		body.Content = text.String()
	}
	return body, faultsOf(&f)
}

func faultsOf(f *v1.FieldErrors) string {
	if err := f.Err(); err != nil {
		return err.Error()
	}
	return ""
}

var fileBodies = []string{
	`{"path":"a","content":"b"}`, ` { "content" : "b" , "path" : "a" } `, `{"content":"","path":"a"}`, `{"content":"b"}`, `{"path":"a"}`, ``, `{}`,
	`{"path":"a","content":"\"\\\/\b\f\n\r\t\u0000\u00e4\ud83d\ude00é€😀"}`, `{"path":"a","content":"\ud800"}`, `{"path":"a","content":"\ud800\u0041\ude00x"}`,
	`{"path":"a","content":"\ud83d\ud83d\ude00"}`, `{"path":"a","c\u006fntent":"b"}`, `{"path":"a","content":"b","content":"c"}`, `{"path":"a","content":"b","content":5}`,
	`{"path":"a","content":"b","content":null}`, `{"path":"a","content":5,"content":"b"}`, `{"path":"a","content":{"content":"b"}}`, `{"path":"a","x":{"content":"b"},"content":"c"}`,
	`{"path":"content","content":"content"}`, `{"path":"a\"b\\","content":"b"}`, `["content":"b"]`, `["content","b"]`, `"content"`, `{"path":"a","content":"b"`, `{"path":"a","content":"b`,
	`{"path":"a","content":"b"} 1`, `{"path":"a","content":"b"}}`, `{"path":"a","content":"\x"}`, `{"path":"a","content":"\u12g4"}`, `{"path":"a","content":"\u12"}`, "{\"path\":\"a\",\"content\":\"\n\"}",
	"{\"path\":\"a\",\"content\":\"\xff\"}", "{\"path\":\"\xff\",\"content\":\"b\"}", `{"path":"a","content":"b","x":1,"y":2}`, `{"path":"a","content"::"b"}`, `{"path":"a","content""b"}`, `{"path":"a","content":"b""c"}`,
	`{"path":"a","content":,"b"}`, `{"content":"b","path":5}`, `{"path":"a",{"content":"b"}}`, `x`, `{"path":"a","content":tru"e"}`,
}

// TestSplitContent: split and whole return the same fields and the same errors, also
// if parts of the body are replaced, duplicated or removed.
func TestSplitContent(t *testing.T) {
	for _, raw := range fileBodies {
		sameSplit(t, raw)
	}
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{`"`, `\`, `u00e4`, `\ud83d`, `\ude00`, `{`, `}`, `[`, `]`, `:`, `,`, ` `, `"content"`, `"path"`, `"a"`, `1`, `null`, "é", "\n", `n`}
	for range 1500 {
		raw := []byte(fileBodies[r.IntN(len(fileBodies))])
		for range 1 + r.IntN(3) {
			at := r.IntN(len(raw) + 1)
			end := min(len(raw), at+r.IntN(3))
			raw = append(append(raw[:at:at], parts[r.IntN(len(parts))]...), raw[end:]...)
		}
		sameSplit(t, string(raw))
	}
}

func sameSplit(t *testing.T, raw string) {
	t.Helper()
	want, wantFaults := whole(raw)
	got, gotFaults := split(t, raw)
	if strings.HasPrefix(wantFaults, "body: ") { // which of several faults is named may differ
		require.True(t, strings.HasPrefix(gotFaults, "body: "), "%q: %q", raw, gotFaults)
		return
	}
	require.Equal(t, wantFaults, gotFaults, "%q", raw)
	if wantFaults == "" {
		require.Equal(t, want, got, "%q", raw)
	}
}
