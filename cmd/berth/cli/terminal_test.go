package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// escapes returns texts of tenants, and how they are written to a terminal.
func escapes() map[string]string {
	return map[string]string{
		"plain \t text\r\n":            "plain \t text\r\n",
		"\x1b[1;31mred\x1b[0m\x1b[m":   "\x1b[1;31mred\x1b[0m\x1b[m",
		"\x1b[38:2::1:2:3mtrue colour": "\x1b[38:2::1:2:3mtrue colour",
		"\x1b]0;title\x07":             `\x1b]0;title\x07`,
		"\x1b[2J\x1b[1;1H":             `\x1b[2J\x1b[1;1H`,
		"\x1b[6n":                      `\x1b[6n`,
		"\x1bP+q544e\x1b\\":            `\x1bP+q544e\x1b\`,
		"\x1b]52;c;cm0gLXJmIC8=\x07":   `\x1b]52;c;cm0gLXJmIC8=\x07`,
		"user ok\rroot ok\n":           `user ok\x0droot ok` + "\n",
		"\u009b2J\x9b2J":               `\u009b2J\x9b2J`,
		"\x00\x08\x7f":                 `\x00\x08\x7f`,
		"größe 日本 🎮":                   "größe 日本 🎮",
		"\u202egnp.exe\u2066":          `\u202egnp.exe\u2066`,
		"\x1b[999999999999999999999999999999999999999999m": `\x1b[999999999999999999999999999999999999999999m`,
		"\x1b\x1b[1mbold": `\x1b` + "\x1b[1mbold",
	}
}

func TestTerminalFilter(t *testing.T) {
	for text, want := range escapes() {
		for cut := range len(text) + 1 { // wherever the text is split
			var got bytes.Buffer
			w := &terminal{out: &got}
			for _, piece := range []string{text[:cut], text[cut:], "."} {
				n, err := w.Write([]byte(piece))
				require.NoError(t, err)
				require.Equal(t, len(piece), n)
			}
			require.Equal(t, want+".", got.String(), "%q cut at %d", text, cut)
		}
	}
}

func FuzzTerminal(f *testing.F) {
	for text := range escapes() {
		f.Add([]byte(text), 1)
	}
	control := regexp.MustCompile("\x1b(\\[[0-9;:]*m)?|[\x00-\x08\x0b-\x1f\x7f]")
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		var got bytes.Buffer
		w := &terminal{out: &got}
		cut = max(0, min(cut, len(text)))
		_, _ = w.Write(text[:cut])
		_, _ = w.Write(text[cut:])
		for _, found := range control.FindAllString(got.String(), -1) {
			require.True(t, found == "\r" || len(found) > 2 && found[len(found)-1] == 'm', "%q became %q", text, got.String())
		}
		require.LessOrEqual(t, len(w.rest), 64)
	})
}

// TestPrintable opens a terminal, a device that is none, and a file.
func TestPrintable(t *testing.T) {
	tty := openTerminal(t, 80, 25).File
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	require.IsType(t, &terminal{}, Printable(tty))
	require.Equal(t, tty, terminalOf(Printable(tty)))
	for _, f := range []*os.File{file, null} {
		require.Equal(t, f, Printable(f))
		require.Nil(t, terminalOf(f))
	}
}
