package stream

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// FuzzPartialLinesAreOneText splits a text into partial lines: a listener receives
// the same text.
func FuzzPartialLinesAreOneText(f *testing.F) {
	f.Add([]byte("a€b😀c"), uint8(1))
	f.Add([]byte("€€€\xff\xe2\x82"), uint8(2))
	f.Add(bytes.Repeat([]byte("\x11€"), 3000), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		n := int(size%7) + 1
		b := builder{text: true}
		for cut := data; ; cut = cut[n:] {
			if len(cut) <= n {
				b.add(v1.Line{Data: cut})
				break
			}
			b.add(v1.Line{Data: cut[:n], Partial: true})
		}
		b.close()
		require.Empty(t, b.held)
		var got, want string
		for _, one := range b.done { // several, if the text is long
			var text string
			require.NoError(t, json.Unmarshal([]byte(`"`+string(one.text)+`"`), &text))
			got += text
		}
		theirs, err := json.Marshal(string(data) + "\n")
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(theirs, &want))
		require.Equal(t, want, got)
	})
}
