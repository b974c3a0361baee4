package intent_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// TestRegistryAuthOfAnotherRegistry names credentials that are not for the image.
func TestRegistryAuthOfAnotherRegistry(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123", 16)
	policy := intent.Policy{Registries: []string{"r.example", "r.example:5000", "docker.io", "index.docker.io"}}
	for _, c := range []struct{ auth, image, install, fault string }{
		{"r.example", "r.example/a:1", "", ""},
		{"r.example", "R.Example/a:1", "", ""},
		{"r.example", "r.example/a:1", "r.example/b", ""},
		{"r.example:5000", "r.example:5000/a:1", "", ""},
		{"docker.io", "busybox", "me/private:2", ""},
		{"index.docker.io", "docker.io/busybox", "", ""},
		{"", "evil.example/a", "evil.example/b", ""},
		{"r.example", "evil.example/a", "", "image: must be from r.example, the registry that registry_auth names; it is from evil.example"},
		{"r.example", "r.example/a", "evil.example/r.example/b", ""},
		{"r.example", "busybox", "r.example/b", ""},
		{"r.example", "busybox", "evil.example/b", "image: must be from r.example, the registry that registry_auth names, unless install_image is; " +
			"it is from docker.io, and install_image from evil.example"},
		{"r.example", "r.example.evil.example/a", "", "image: must be from r.example, the registry that registry_auth names; it is from r.example.evil.example"},
		{"r.example", "r.example:5000/a", "", "image: must be from r.example, the registry that registry_auth names; it is from r.example:5000"},
		{"r.example", "busybox", "", "image: must be from r.example, the registry that registry_auth names; it is from docker.io"},
		{"r.example", digest, "", "image: must be from r.example, the registry that registry_auth names; it is from docker.io"},
		{"docker.io", "localhost/busybox", "", "image: must be from docker.io, the registry that registry_auth names; it is from localhost"},
	} {
		var f v1.FieldErrors
		intent.CheckContainer(&f, policy, "mc", &v1.ContainerSpec{VolumeID: "v", Image: c.image, InstallImage: c.install, RegistryAuth: c.auth})
		if c.fault == "" {
			require.NoError(t, f.Err(), c.image)
			continue
		}
		require.EqualError(t, f.Err(), c.fault)
	}
}

func TestReinstallKeepsToTheRegistry(t *testing.T) {
	w := newWorld(t)
	w.create("mc", 1000)
	w.installed("mc")
	require.NoError(t, w.store.Update(func(tx *store.Tx) error {
		return store.Containers.SetSpec(tx, "mc", func(s *v1.ContainerSpec) error {
			s.Image, s.RegistryAuth = "r.example/a", "r.example"
			return nil
		})
	}))
	evil, good := "evil.example/a", "r.example/b"
	before := w.get("mc").Spec
	require.EqualError(t, intent.ReinstallContainer(w.store, "mc", v1.ReinstallRequest{Image: &evil}),
		"image: must be from r.example, the registry that registry_auth names; it is from evil.example")
	require.Equal(t, before, w.get("mc").Spec)
	require.NoError(t, intent.ReinstallContainer(w.store, "mc", v1.ReinstallRequest{Image: &good}))
	require.Equal(t, good, w.get("mc").Spec.Image)
}
