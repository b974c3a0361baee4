package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
