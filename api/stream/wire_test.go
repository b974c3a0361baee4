package stream

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var seeds = []string{"", "plain", "a\\n", "\x00\r\n\\", "\xff\xfe", "\xe2\x82", "€\"\t\x1b[0m", strings.Repeat("x\\", 40000)}

func FuzzEncodeIsJSON(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := Encode(EventConsole, "mc", data, time.Unix(1, 2), 3)
		var got struct {
			Event, Container, Data, Time string
			Seq                          uint64
		}
		require.True(t, utf8.Valid(b))
		require.NoError(t, json.Unmarshal(b, &got))
		theirs, err := json.Marshal(string(data))
		require.NoError(t, err)
		var want string
		require.NoError(t, json.Unmarshal(theirs, &want))
		require.Equal(t, want, got.Data)
		require.Equal(t, "1970-01-01T00:00:01.000000002Z", got.Time)
		require.EqualValues(t, 3, got.Seq)
	})
}
