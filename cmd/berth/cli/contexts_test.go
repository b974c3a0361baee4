package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContextsPath(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/x/berth/contexts.json":         {"XDG_CONFIG_HOME": "/x", "HOME": "/h"},
		"/h/.config/berth/contexts.json": {"XDG_CONFIG_HOME": "relative", "HOME": "/h"},
		"":                               {},
	} {
		require.Equal(t, want, contextsPath(func(name string) string { return env[name] }))
	}
	require.ErrorContains(t, updateContexts("", nil), "set HOME or XDG_CONFIG_HOME")
}

func TestUpdateContexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "contexts.json")
	set, err := loadContexts(path)
	require.NoError(t, err)
	require.Empty(t, set.Contexts)
	paris := savedContext{URL: "https://paris:8070", Token: "secret", CA: "pem"}
	require.NoError(t, updateContexts(path, func(s *contextSet) error {
		s.Current, s.Contexts["paris"] = "paris", paris
		return nil
	}))
	set, err = loadContexts(path)
	require.NoError(t, err)
	require.Equal(t, contextSet{Current: "paris", Contexts: map[string]savedContext{"paris": paris}}, set)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", set, set, set), "secret")

}

func TestBadContexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "contexts.json")
	for text, want := range map[string]string{
		`{"contexts": {"a": {"token": "hidden", "url": 1}}}`: "is not a file of contexts",
		`hidden`: "is not a file of contexts",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := loadContexts(path)
		require.ErrorContains(t, err, path+": ")
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hidden")
	}
	require.NoError(t, os.Chmod(path, 0o640))
	_, err := loadContexts(path)
	require.ErrorContains(t, err, "run chmod 600 on it")
}
