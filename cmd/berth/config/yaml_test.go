package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestDecodeEmptyFile(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "---\n...\n", "~", "null"} {
		c := v1.Defaults()
		require.Empty(t, decode(strings.NewReader(text), &c), "%q", text)
		require.Equal(t, v1.Defaults(), c)
	}
}

func TestTemplateQuotesDataPath(t *testing.T) {
	for _, want := range []string{"/home/a b/berth", "/home/a #b/berth", "/home/a: b/berth", `/home/"a\\b"/berth`, "/home/ä/berth"} {
		c := v1.Defaults()
		require.Empty(t, decode(strings.NewReader(render(want)), &c), want)
		require.Equal(t, want, c.Storage.DataPath)
	}
}

func TestLargeFileIsRefused(t *testing.T) {
	text := "# " + strings.Repeat("x", maxFile) + "\nserver: {port: 1}\n"
	path := filepath.Join(t.TempDir(), "berth.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	_, err := (&Loader{File: path, env: map[string]string{"BERTH_AUTHORIZATION_TOKEN": fileToken}}).Load()
	require.ErrorContains(t, err, "larger than")
}

func FuzzDecode(f *testing.F) {
	f.Add(template)
	for _, row := range badFiles() {
		f.Add(row.text)
	}
	f.Add("<<: *a")
	f.Add("? {a: b}\n: c")
	f.Add("&a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		c := v1.Defaults()
		c.Authorization.Token = fileToken
		if len(decode(strings.NewReader(text), &c)) == 0 {
			c.Complete()
			_ = c.Validate().Error()
		}
	})
}
