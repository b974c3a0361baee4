package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestEnvironmentSetsEveryKey(t *testing.T) {
	values := map[string]string{"int": "7", "int64": "7", "bool": "true", "slice": "a,b",
		"map": "h=u:p", "map[string]v1.VolumeClaim": "fast=c:7KiB", "string": "text", "v1.Size": "7KiB", "v1.Duration": "7h"}
	l := &Loader{env: map[string]string{}}
	for key := range Keys(new(v1.Config)) {
		value, ok := values[key.value.Type().String()]
		if !ok {
			value = values[key.value.Kind().String()]
		}
		l.env[envName(key.Name)] = value
	}
	var c v1.Config
	require.Empty(t, l.overlay(&c))
	for key := range Keys(&c) {
		require.False(t, key.value.IsZero(), key.Name)
	}
}

func TestEnvironmentErrors(t *testing.T) {
	env := []string{"BERTH_AUTHORIZATION_TOKEN=" + fileToken, "BERTH_SERVER_PROT=1", "BERTH_URL=http://x", "BERTH_ENGINE_ROOT=/x",
		"BERTH_METRICS_PUBLIC=", "BERTH_SERVER_PORT=tcp://1.2.3.4:8070"}
	l := newTestLoader(t, writeFile(t, ""), env...)
	_, err := l.Load()
	require.ErrorContains(t, err, "BERTH_SERVER_PROT in the environment is not a key")
	require.Equal(t, []string{"", "server.port", "metrics.public"}, faultKeys(t, l))
}
