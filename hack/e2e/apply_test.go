package e2e_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// TestApply creates and changes a container with PUT.
func TestApply(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	body := func(command, power string) string {
		return fmt.Sprintf(`{"image":"{image}","volume_id":"{v}","startup_command":%q,"power":%q,"labels":{"game":"go"}}`, command, power)
	}
	names := map[string]string{"v": b.Volume(t), "image": berthtest.Busybox(t)}
	walk(t, b, names, []row{
		{"PUT /containers/mc?dry_run=true", body("sleep 100", "running"), 200, `{"changed":true,"actions":"*"}`},
		{"GET /containers/mc", "", 404, wrong("Container not found")},
		{"PUT /containers/mc", body("sleep 100", "running"), 201, `{"internal_id":"mc","power":"running","state":"installing","generation":1}`},
		{"PUT /containers/mc", body("sleep 100", "running"), 200, `{"internal_id":"mc","generation":1}`},
		{"PUT /containers/mc?dry_run=true", body("sleep 100", "running"), 200, `{"changed":false,"actions":[]}`},
	})
	before := b.State(t, "mc", "running")
	walk(t, b, names, []row{
		{"PUT /containers/mc?dry_run=true", body("sleep 200", "running"), 200, `{"changed":true,"actions":"*"}`},
		{"PUT /containers/mc", `{"image":"{image}"}`, 400, `{"error":"*"}`},
		{"GET /containers/mc", "", 200, `{"startup_command":"sleep 100","generation":1}`},
		{"GET /containers?label=game=go", "", 200, `{"containers":[{"internal_id":"mc"}]}`},
		{"GET /containers?label=game=chess", "", 200, `{"containers":[]}`},
		{"GET /containers/mc/stats", "", 200, `{"memory_usage":"*","memory_limit":"*"}`},
	})
	got := b.Do(t, "GET", "/containers/mc", nil)
	stale := before.ResourceVersion
	require.Equal(t, `"`+stale+`"`, got.Header.Get("ETag"))
	next := berthtest.Spec{"image": names["image"], "volume_id": names["v"], "startup_command": "sleep 300", "power": "running"}
	require.Equal(t, 200, b.Do(t, "PUT", "/containers/mc", next, "If-Match", got.Header.Get("ETag")).Status)
	refused := b.Do(t, "PUT", "/containers/mc", next, "If-Match", stale)
	require.Equal(t, 412, refused.Status, string(refused.Body))
	b.Await(t, "mc", "the new container runs", func(c berthtest.Container) bool {
		return c.State == "running" && c.ContainerID != before.ContainerID && c.ObservedGeneration == c.Generation
	})
	whole := b.Do(t, "GET", "/containers/mc", nil)
	again := b.Do(t, "PUT", "/containers/mc", string(whole.Body))
	require.Equal(t, 200, again.Status, "PUT accepts the body of GET: %s", again.Body)
	require.Equal(t, b.Container(t, "mc").Generation, uint64(2), "and changes nothing")

	volume := b.Container(t, "mc").Mount.Source
	walk(t, b, names, []row{
		{"DELETE /volumes/{v}", "", 409, wrong("Volume is in use by container mc")},
		{"DELETE /containers/mc?volume=true", "", 200, `{"message":"*"}`},
	})
	b.Gone(t, "mc")
	require.Equal(t, 404, b.Do(t, "GET", "/volumes/"+names["v"], nil).Status)
	berthtest.Until(t, wait, "its directory is gone", func() bool { _, err := os.Stat(volume); return os.IsNotExist(err) })
}
