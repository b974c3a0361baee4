package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestFilesWithNothingInThemAreTheDefaults(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "---\n...\n", "~", "null"} {
		c := v1.Defaults()
		require.Empty(t, decodeYAML(strings.NewReader(text), &c), "%q", text)
		require.Equal(t, v1.Defaults(), c)
	}
}

func TestAWrittenFileKeepsWhateverPathItIsGiven(t *testing.T) {
	for _, want := range []string{"/home/a b/berth", "/home/a #b/berth", "/home/a: b/berth", `/home/"a\\b"/berth`, "/home/ä/berth"} {
		c := v1.Defaults()
		require.Empty(t, decodeYAML(strings.NewReader(renderConfig(want)), &c), want)
		require.Equal(t, want, c.Storage.DataPath)
	}
}

func TestALargeFileIsRefusedAndNotCutOff(t *testing.T) {
	text := "# " + strings.Repeat("x", maxConfigFile) + "\nserver: {port: 1}\n"
	path := filepath.Join(t.TempDir(), "berth.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	_, err := (&loader{configFlag: path, env: map[string]string{"BERTH_AUTHORIZATION_TOKEN": fileToken}}).load()
	require.ErrorContains(t, err, "larger than")
}

func FuzzDecodeYAML(f *testing.F) {
	f.Add(configTemplate)
	for _, row := range badFiles {
		f.Add(row.text)
	}
	f.Add("<<: *a")
	f.Add("? {a: b}\n: c")
	f.Add("&a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		c := v1.Defaults()
		c.Authorization.Token = fileToken
		if len(decodeYAML(strings.NewReader(text), &c)) == 0 {
			c.Complete()
			_ = c.Validate().Error()
		}
	})
}
