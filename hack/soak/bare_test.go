package soak_test

import (
	"net/http"
	"testing"
	"time"

	"berth/hack/test/enginetest"
)

// bareContainer is a container like that of the good tenant, which the engine starts without
// berth: what its starts take beside the attack is the share of the engine and of the machine.
type bareContainer struct {
	engine *enginetest.Isolated
	id     string
}

func newBareContainer(t *testing.T, engine *enginetest.Isolated) bareContainer {
	t.Helper()
	return bareContainer{engine, engine.CreateRaw(t, "bare", map[string]any{
		"Image": engine.Busybox(t), "Cmd": []string{"sleep", "1000"},
		"HostConfig": map[string]any{"Memory": 64 << 20, "NanoCpus": 1_000_000_000},
	})}
}

// roundTrip starts the container, kills it, and returns how long the start took.
func (b bareContainer) roundTrip(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	b.engine.Must(t, http.MethodPost, "/containers/"+b.id+"/start", nil)
	took := time.Since(began)
	b.engine.Kill(t, b.id)
	b.engine.Must(t, http.MethodPost, "/containers/"+b.id+"/wait", nil)
	return took
}
