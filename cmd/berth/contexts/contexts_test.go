package contexts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPath(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/x/berth/contexts.json":         {"XDG_CONFIG_HOME": "/x", "HOME": "/h"},
		"/h/.config/berth/contexts.json": {"XDG_CONFIG_HOME": "relative", "HOME": "/h"},
		"":                               {},
	} {
		require.Equal(t, want, Path(func(name string) string { return env[name] }))
	}
	require.ErrorContains(t, Update("", nil), "set HOME or XDG_CONFIG_HOME")
}

func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "contexts.json")
	set, err := Load(path)
	require.NoError(t, err)
	require.Empty(t, set.Contexts)
	paris := Context{URL: "https://paris:8070", Token: "secret", CA: "pem"}
	require.NoError(t, Update(path, func(s *Set) error {
		s.Current, s.Contexts["paris"] = "paris", paris
		return nil
	}))
	set, err = Load(path)
	require.NoError(t, err)
	require.Equal(t, Set{Current: "paris", Contexts: map[string]Context{"paris": paris}}, set)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", set, set, set), "secret")

	require.EqualError(t, Update(path, func(s *Set) error {
		s.Contexts["big"] = Context{CA: strings.Repeat("x", maxFile)}
		return nil
	}), path+" would be larger than 1MiB: remove contexts")
	again, err := Load(path)
	require.NoError(t, err)
	require.Equal(t, set, again)
}

// TestConcurrentUpdates loses no change.
func TestConcurrentUpdates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "contexts.json")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			require.NoError(t, Update(path, func(s *Set) error {
				s.Contexts[fmt.Sprint("node", i)] = Context{URL: "http://a"}
				return nil
			}))
		})
	}
	all.Wait()
	set, err := Load(path)
	require.NoError(t, err)
	require.Len(t, set.Contexts, 20)
}

func TestLoadRefusesBadFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "contexts.json")
	for text, want := range map[string]string{
		`{"contexts": {"a": {"token": "hidden", "tokn": 1}}}`: "is not a file of contexts (at byte",
		`{"contexts": {"../a": {}}}`:                          `"../a" cannot name a context`,
		strings.Repeat(" ", maxFile+1):                        "is larger than 1MiB",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := Load(path)
		require.ErrorContains(t, err, path+": ")
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hidden")
	}
	require.NoError(t, os.Chmod(path, 0o640))
	_, err := Load(path)
	require.ErrorContains(t, err, "run chmod 600 on it")
}
