package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	engines "berth/runtime/keeper"
)

// TestSurvived: an exit soon after the kernel has killed a process for its memory is one for want of memory, and one
// long after it is not.
func TestSurvived(t *testing.T) {
	require.Equal(t, engines.Survived, survived)
	synctest.Test(t, func(t *testing.T) {
		none, file := filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "memory.oom_control")
		m := &memory{files: []string{none, file}}
		kill := func(count string) {
			require.NoError(t, os.WriteFile(file, []byte("oom_kill_disable 0\nunder_oom 0\noom_kill "+count+"\n"), 0o600))
		}
		require.False(t, m.survived(), "nothing is known")
		kill("0")
		time.Sleep(time.Hour)
		require.False(t, m.survived(), "none was killed")
		kill("1")
		require.False(t, m.survived())
		time.Sleep(survival + time.Second)
		require.True(t, m.survived())
		kill("2")
		require.False(t, m.survived(), "another was killed just now")
	})
}
