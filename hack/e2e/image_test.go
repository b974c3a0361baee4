package e2e_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

func TestMissingImage(t *testing.T) {
	t.Parallel()
	// More than the usual 2 s, for a machine that is busy with other tests.
	b := berthtest.Start(t, berthtest.Options{Config: "reconcile: {create_wait: 30s}"})
	registry, port := enginetest.StartRegistry(t), b.Port(t)
	// An installation on the same volume does not delay the answer.
	b.Create(t, "busy", berthtest.Spec{"install_script": "sleep 100000"})
	volume := b.Container(t, "busy").VolumeID
	began := time.Now()
	body := b.Body(t, "mc", berthtest.Spec{"image": registry.Addr + "/nope:1", "ports": []any{port}, "install_script": "true", "volume_id": volume})
	got := b.Do(t, "POST", "/containers", body)
	took := time.Since(began)
	require.Equal(t, 500, got.Status, string(got.Body))
	require.JSONEq(t, wrong("Failed to create Docker container: image not found"), string(got.Body))
	require.Less(t, took, 20*time.Second, "berth answers as soon as the image is known to be missing")
	require.Equal(t, 404, b.Do(t, "GET", "/containers/mc", nil).Status, "no record is left")
	require.Equal(t, berthtest.Entry{PortRef: port}, b.Pool(t)[port.String()], "no claim is left")
	require.Empty(t, b.Containers(t, "mc"), "no container is left")
	t.Logf("refused after %s", took.Round(time.Millisecond))

	body["image"] = registry.Push(t, b.Engine, enginetest.Busybox(t), "yes:1")
	t.Cleanup(func() { b.Engine.RemoveImage(t, body["image"].(string)) })
	b.Create(t, "mc", body)
	b.Await(t, "mc", "its turn", func(c berthtest.Container) bool {
		return strings.Contains(string(c.Message), "installation of container busy")
	})
	b.Delete(t, "busy")
	b.State(t, "mc", "ready") // the same id, pulled from the registry
}

// TestRegistryOfEachImage: the credentials that registry_auth names are sent to that registry alone, which
// one of both images is from.
func TestRegistryOfEachImage(t *testing.T) {
	t.Parallel()
	private, public := enginetest.StartLockedRegistry(t, "berth", "registry-password"), enginetest.StartRegistry(t)
	b := berthtest.Start(t, berthtest.Options{Config: "reconcile: {create_wait: 30s}\n" +
		fmt.Sprintf("docker: {registries: {%q: {username: berth, password: registry-password}}}", private.Addr)})
	spec := berthtest.Spec{"registry_auth": private.Addr, "install_script": "true", "startup_command": "sleep 1000"}
	for id, images := range map[string][2]*enginetest.Registry{"server": {private, public}, "installer": {public, private}} {
		for i, field := range []string{"image", "install_image"} {
			ref := images[i].Push(t, b.Engine, enginetest.Busybox(t), id+":1")
			t.Cleanup(func() { b.Engine.RemoveImage(t, ref) })
			spec = spec.With(berthtest.Spec{field: ref})
		}
		b.Started(t, id, spec)
	}
	spec = spec.With(berthtest.Spec{"image": public.Addr + "/a:1", "install_image": public.Addr + "/b:1"})
	got := b.Do(t, "POST", "/containers", b.Body(t, "neither", spec))
	require.Equal(t, 400, got.Status, string(got.Body))
	require.Contains(t, string(got.Body), "must be from "+private.Addr)
}

// TestUnreachableRegistry: while a registry does not answer or cannot be reached,
// the image may exist. The creation is accepted and the pull is retried.
func TestUnreachableRegistry(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{Config: "reconcile: {create_wait: 700ms}"})
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	for id, registry := range map[string]string{"silent": silent.Addr().String(), "away": fmt.Sprintf("127.0.0.1:%d", berthtest.FreePort(t)),
		"unknown": "no-such-registry.invalid"} {
		body := b.Body(t, id, berthtest.Spec{"image": registry + "/yes:1"})
		began := time.Now()
		answer := b.Post(t, "/containers", body)
		require.Less(t, time.Since(began), 20*time.Second)
		holds(t, fmt.Sprintf(`{"message":"*","internal_id":%q,"state":"installing"}`, id), answer.Body, id)
		c := b.Await(t, id, "a message", func(c berthtest.Container) bool { return c.Message != "" })
		require.Equal(t, v1.Installing, c.State, c.Message)
		if id != "silent" { // it does not even refuse connections
			berthtest.Until(t, wait, "a condition names the cause", func() bool {
				return strings.Contains(string(b.Must(t, "GET", "/containers/"+id, nil).Body), `"reason":"PullFailed"`)
			})
		}
		t.Logf("%s: %s", id, c.Message)
		b.Restart(t)
		b.Delete(t, id)
	}
}
