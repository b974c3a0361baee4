package e2e_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// TestEngineUpgrade kills berth's engine and starts the newest one on the
// same socket and data. berth starts servers again and executes requests without
// its own restart.
func TestEngineUpgrade(t *testing.T) {
	t.Parallel()
	old, newest := os.Getenv("BERTH_ENGINE_ROOT"), enginetest.Root(t, "sid")
	if old == newest {
		old = enginetest.Root(t, "trixie")
	}
	engine := enginetest.StartIsolatedOf(t, old)
	b := berthOn(t, engine)
	image := engine.Busybox(t)
	b.Started(t, "mc", berthtest.Spec{"image": image})
	before := b.Processes(t)["mc"]
	was := engine.Version(t)
	engine.Kill9(t)
	engine.Use(t, newest)
	engine.Start(t)
	require.NotEqual(t, was, engine.Version(t))
	b.Ready(t)
	b.Await(t, "mc", "another run", func(c berthtest.Container) bool {
		now := b.Processes(t)["mc"]
		return c.State == "running" && now != "" && now != before
	})
	b.Started(t, "late", berthtest.Spec{"image": image})
	require.True(t, onlyServer(t, b, "mc"))
	t.Logf("from Docker %s to %s", was, engine.Version(t))
}
