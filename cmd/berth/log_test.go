package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/auth"
	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

func TestLogSpellsDurations(t *testing.T) {
	for format, want := range map[string]string{"json": `"retry_in":"1.5s"`, "text": "retry_in=1.5s"} {
		f, err := os.Create(filepath.Join(t.TempDir(), "log"))
		require.NoError(t, err)
		newLog(format, slog.LevelInfo, f).Info("engine is away", "retry_in", 1500*time.Millisecond+3)
		require.NoError(t, f.Close())
		text, err := os.ReadFile(f.Name())
		require.NoError(t, err)
		require.Contains(t, string(text), want)
		require.Equal(t, format == "json", json.Valid(text))
	}
}

func TestLogLevelIsThatOfTheSettings(t *testing.T) {
	level := slog.LevelInfo
	load := func() (config.Loaded, error) {
		c := v1.Defaults()
		c.Log.Level, c.Authorization.Token = strings.ToLower(level.String()), auth.NewSecret()
		c.Complete()
		return config.Loaded{Config: c}, nil
	}
	first, err := load()
	require.NoError(t, err)
	settings := config.NewSettings(first, load)
	log := newLog("json", liveLevel{settings}, os.Stderr)
	require.False(t, log.Enabled(t.Context(), slog.LevelDebug))
	level = slog.LevelDebug
	_, err = settings.Reload()
	require.NoError(t, err)
	require.True(t, log.Enabled(t.Context(), slog.LevelDebug))
}
