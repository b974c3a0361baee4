package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

const fileToken = "berth_00000000000000000000000000000001"

// writeFile writes a configuration and returns its path.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "berth.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// newTestLoader returns a loader with this --config and environment.
func newTestLoader(t *testing.T, file string, env ...string) *Loader {
	t.Helper()
	l := NewLoader(env)
	l.File = file
	return l
}

// override gives l a flag.
func override(t *testing.T, l *Loader, key, text string) {
	t.Helper()
	for _, o := range l.Overrides() {
		if o.Name == key {
			require.NoError(t, o.Set(text))
			require.Equal(t, text, o.String())
			return
		}
	}
	t.Fatalf("%s has no flag", key)
}

// faultKeys returns the keys of the errors of Load.
func faultKeys(t *testing.T, l *Loader) []string {
	t.Helper()
	_, err := l.Load()
	var faults v1.FieldErrors
	require.ErrorAs(t, err, &faults)
	keys := make([]string, len(faults))
	for i := range faults {
		keys[i] = faults[i].Key
	}
	return keys
}
