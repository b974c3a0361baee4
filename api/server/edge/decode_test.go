package edge

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

type sample struct {
	Text     string            `json:"text" api:"required"`
	Flag     *bool             `json:"flag"`
	Number   int64             `json:"number"`
	Float    float64           `json:"float"`
	Small    uint16            `json:"small"`
	Duration v1.Duration       `json:"duration"`
	Time     *time.Time        `json:"time"`
	Map      map[string]string `json:"map"`
	List     []sampleItem      `json:"list"`
	Status   any               `json:"status" api:"readonly"`
}

type sampleItem struct {
	Port int `json:"port" api:"required"`
}

func TestUnmarshal(t *testing.T) {
	for body, want := range map[string]string{
		`{"text":"a"}`:                               "",
		``:                                           "text: is required",
		` `:                                          "text: is required",
		`{"text":null}`:                              "text: is required",
		`{"text":"a","flag":null}`:                   "",
		`{"text":"a","status":{"x":[1]}}`:            "",
		`{"text":"a","number":1e3}`:                  "number: must be an integer",
		`{"text":"a","number":true}`:                 "number: must be an integer",
		`{"text":"a","float":1e3}`:                   "",
		`{"text":"a","float":1e999}`:                 "float: must be a number",
		`{"text":"a","small":65536}`:                 "small: must be an integer between 0 and 65535",
		`{"text":"a","duration":"1d"}`:               "",
		`{"text":"a","duration":30}`:                 "",
		`{"text":"a","duration":"x"}`:                "duration: must be a duration such as 90s, 1h30m or 7d",
		`{"text":"a","time":"2026-07-15T00:00:00Z"}`: "",
		`{"text":"a","time":"noon"}`:                 "time: must be a time such as 2026-07-15T00:00:00Z",
		`{"text":"a","map":{"k":1}}`:                 "map.k: must be a string",
		`{"text":"a","map":[]}`:                      "map: must be an object",
		`{"text":"a","list":[{"port":1},{}]}`:        "list[1].port: is required",
		`{"text":"a","list":[null,5]}`:               "list[0]: must be an object; list[1]: must be an object",
		`{"text":"a","list":{}}`:                     "list: must be an array",
		`{"text":5,"x":1,"flag":"true"}`:             "text: must be a string; flag: must be true or false; x: unknown field",
		`[]`:                                         "body: must be an object",
		`"a"`:                                        "body: must be an object",
		`null`:                                       "body: must be an object",
		`{`:                                          "body: is not JSON: it ends too early, after 1 bytes",
		`{"text":"a"}}`:                              "body: has data after the JSON value",
		`{"text":"a"} 1`:                             "body: has data after the JSON value",
		"{\"text\":\"\xff\"}":                        "body: must be UTF-8",
		`{"text":"a",}`:                              "body: is not JSON: invalid character '}' looking for beginning of object key string, at byte 13",
		`{"Text":"a"}`:                               "text: is required; Text: unknown field",
		`{"text":"a","text":null}`:                   "text: is set twice",
		`{"text":"a","t\u0065xt":5}`:                 "text: is set twice",
		`{"text":"a","map":{"k":"","k":""}}`:         "map.k: is set twice",
		`{"text":"a","status":{"x":1,"x":1}}`:        "",
	} {
		var f v1.FieldErrors
		var s sample
		unmarshal([]byte(body), &s, &f)
		got := ""
		if err := f.Err(); err != nil {
			got = err.Error()
		}
		require.Equal(t, want, got, body)
	}
	var f v1.FieldErrors
	unmarshal([]byte(`{"text":"a","`+strings.Repeat("x", 500)+`":1}`), &sample{}, &f)
	require.Less(t, len(f.Err().Error()), 100, "a long name is clipped")
}

// FuzzUnmarshal compares accepted bodies with encoding/json.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{`{"text":"a","flag":true,"number":-5,"float":0.5,"small":7,"map":{"a":"b"},"list":[{"port":1}]}`,
		`{"text":"\ud800","duration":"1d"}`, `[[[[`, `{"text":"a","text":"b"}`, "\xef\xbb\xbf{}", `{"list":[{"port":1,"port":2}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var faults v1.FieldErrors
		var got, want sample
		unmarshal(raw, &got, &faults)
		if faults.Any() || len(strings.TrimSpace(string(raw))) == 0 {
			return
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("accepted what is no JSON for it: %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" && !strings.Contains(string(raw), "null") && !merges(raw) {
			t.Fatal(diff)
		}
	})
}

// merges reports whether encoding/json may merge two values of raw: its names of fields are
// the same in any case, and status is a struct for it.
func merges(raw []byte) bool {
	return strings.Contains(string(raw), `\u`) || strings.Contains(string(raw), `"map"`)
}

// TestBodyTooDeepOrLarge: a body that is too deep or has too many values is refused
// with one error.
func TestBodyTooDeepOrLarge(t *testing.T) {
	for body, want := range map[string]string{
		`{"status":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `,"text":"a"}`: "",
		`{"status":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `,"text":"a"}`: "body: must be nested at most 64 deep",
		`{"text":"a","x":[` + strings.Repeat("0,", maxValues) + `0]}`:                     "body: must hold at most 200000 values",
		`{"text":"a","x":[` + strings.Repeat(`{"":0},`, maxValues/2) + `0]}`:              "body: must hold at most 200000 values",
		strings.Repeat(`[`, 1<<20): "body: must be nested at most 64 deep",
	} {
		var f v1.FieldErrors
		unmarshal([]byte(body), &sample{}, &f)
		got := ""
		if err := f.Err(); err != nil {
			got = err.Error()
		}
		require.Equal(t, want, got, Clip(body))
	}
}
