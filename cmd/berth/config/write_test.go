package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestWriteDefaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etc", "berth", "berth.yaml")
	l := newTestLoader(t, path)
	require.NoError(t, Write(path, l.DataPath()))
	got, err := l.Load()
	require.NoError(t, err)
	require.Empty(t, got.Warnings)

	want := v1.Defaults()
	want.Storage.DataPath = l.DataPath()
	want.Complete()
	require.True(t, v1.IsToken(got.Config.Authorization.Token.Reveal()))
	want.Authorization.Token = got.Config.Authorization.Token
	for w := range Keys(&want) {
		for g := range Keys(&got.Config) {
			require.True(t, w.Name != g.Name || equal(w.value, g.value), "%s: %v, not %v", g.Name, g.value, w.value)
		}
	}
	for l := range Keys(&want) {
		name := l.Name[strings.LastIndexByte(l.Name, '.')+1:]
		require.Regexp(t, `(?m)^\s*`+name+":", template, "the file shows every key")
	}
}

func TestTemplateQuotesDataPath(t *testing.T) {
	for _, want := range []string{"/home/a b/berth", "/home/a #b/berth", "/home/a: b/berth", `/home/"a\\b"/berth`, "/home/ä/berth"} {
		c := v1.Defaults()
		require.Empty(t, decode(strings.NewReader(render(want)), &c), want)
		require.Equal(t, want, c.Storage.DataPath)
	}
}
