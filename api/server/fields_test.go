package server

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/fieldtest"
	"berth/hack/test/openapitest"
)

// fullContainer returns a request that sets the fields of a container.
func fullContainer(volume string) object {
	return object{
		"image": "games.example/survival:1", "volume_id": volume, "startup_command": "run", "start_pattern": "^Done",
		"pull_policy": "always", "timezone": "Europe/Berlin", "read_only_root": true, "install_mount": "/mnt/server", "install_entrypoint": "bash", "install_user": "root",
		"install_script": "true", "install_image": "games.example/installer:1", "install_timeout": "10m0s", "start_timeout": "5m0s",
		"ports":  []any{map[string]any{"ip": "127.0.0.1", "port": 1000.0, "protocol": "tcp", "container_port": 25565.0}},
		"limits": map[string]any{"memory": 1e9, "cpu": 1.5, "swap": 1e8, "pids": 100.0, "disk": 1e10, "io_weight": 100.0, "oom_kill": false},
		"env":    map[string]any{"EULA": "true"}, "cpuset": "0-1", "user": "1000:1000", "workdir": "/home/container/world", "hostname": "mc.example.com", "shm_size": 1048576.0, "tty": true,
		"labels": map[string]any{"panel": "x"}, "mounts": []any{map[string]any{"source": "/srv/maps", "target": "/maps", "read_only": true}},
		"stop":           map[string]any{"signal": "SIGINT", "timeout": "1m0s"},
		"restart_policy": map[string]any{"mode": "always"}, "registry_auth": "games.example", "power": "running",
		"config_files": []any{map[string]any{"path": "server.properties", "format": "properties", "set": map[string]any{"port": "1"}}},
	}
}

// TestContainerFieldsComeBack creates a container with a value in each field: GET returns it as
// it was sent, and GET …/spec returns a request that changes nothing.
func TestContainerFieldsComeBack(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) {
		c.Docker.AllowedMounts = []string{"/srv"}
		c.Docker.Registries = map[string]v1.Registry{"games.example": {Username: "u", Password: "p"}}
	})
	h.ports(1000)
	sent := fullContainer(h.volume())
	h.must("PUT", "/containers/mc", sent)
	delete(sent, "install_script")
	sent["internal_id"] = "mc"
	got := h.must("GET", "/containers/mc", nil).json
	for name, value := range sent {
		require.Equal(t, value, got[name], name)
	}
	require.NotContains(t, got, "install_script", "it may hold secrets")
	declared := h.must("GET", "/containers/mc/spec", nil)
	for name, value := range sent {
		require.Equal(t, value, declared.json[name], name)
	}
	require.Equal(t, h.must("GET", "/containers/mc", nil).header.Get("ETag"), declared.header.Get("ETag"))
	for _, body := range []object{declared.json, got} {
		require.Equal(t, object{"changed": false, "actions": []any{}}, h.must("PUT", "/containers/mc?dry_run=true", body).json)
	}
	h.refuse(404, "Container not found", "GET", "/containers/other/spec", nil)
	for _, name := range []string{"install", "run", "kill_run", "requested_by"} {
		require.NotContains(t, got, name)
		h.refuse(400, name+": unknown field", "PUT", "/containers/mc", object{"image": "i", "volume_id": sent["volume_id"], name: 1})
	}
}

// TestContainerFieldsAreEverywhere requires of each field of a container's spec that the
// document describes it and an end-to-end test uses it.
// TestSpecFieldsAreApplied in controller/container and TestBuildUsesEveryField in
// runtime/docker follow the field to the engine.
func TestContainerFieldsAreEverywhere(t *testing.T) {
	kind, except := reflect.TypeFor[v1.ContainerSpec](), map[string]string{"install_script": "it may hold secrets"}
	for _, f := range v1.Fields(kind) {
		if f.Access == "-" {
			except[f.Name] = "clients do not know it"
		}
	}
	withScript := maps.Clone(except)
	delete(withScript, "install_script")
	requireFields(t, kind, []place{
		{"api/openapi.yaml: ContainerRequest with a description", described(t, "ContainerRequest"), withScript},
		{"api/openapi.yaml: Container with a description", described(t, "Container"), except},
		{"api/openapi.yaml: required of Container", requiredIn(t, "Container", kind), except},
		{"hack/e2e: no test sends it", namedIn(t, "../../hack/e2e/*_test.go", kind), withScript},
	})
}

// place is a place that must have each field: has holds a value at the field's path.
type place struct {
	name   string
	has    object
	except map[string]string // fields that it need not have, with the reason
}

// requireFields requires that each place has each field of a type.
func requireFields(t *testing.T, kind reflect.Type, places []place) {
	t.Helper()
	for _, p := range places {
		if file, _, _ := strings.Cut(p.name, ":"); filepath.Ext(file) != "" {
			require.FileExists(t, filepath.Join("../..", file))
		}
	}
	for _, path := range fieldtest.Paths(kind) {
		var missing []string
		first, _, _ := strings.Cut(path, ".")
		for _, p := range places {
			if p.except[first] == "" && at(p.has, path) == nil {
				missing = append(missing, p.name)
			}
		}
		if len(missing) > 0 {
			t.Errorf("the field %s of %s is missing in:\n\t%s", path, kind.Name(), strings.Join(missing, "\n\t"))
		}
	}
}

// at returns the value at a path, or nil if it is empty. A slice stands for its first
// element. False is a value: what was sent as false has to be stored.
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		if list, is := v.([]any); is && len(list) > 0 {
			v = list[0]
		}
		m, is := v.(map[string]any)
		if !is {
			return nil
		}
		v = m[name]
	}
	switch x := v.(type) {
	case nil:
		return nil
	case bool:
		return v
	case map[string]any:
		if len(x) == 0 {
			return nil
		}
		return v
	}
	if reflect.ValueOf(v).IsZero() {
		return nil
	}
	return v
}

// described returns the descriptions of the properties of a schema of the document.
func described(t *testing.T, schema string) object {
	t.Helper()
	return descriptions(openapitest.Document(t).Components.Schemas[schema])
}

func descriptions(s *openapi3.SchemaRef) object {
	m := object{}
	for name, p := range s.Value.Properties {
		switch {
		case p.Value.Items != nil && p.Value.Items.Value.Properties != nil:
			m[name] = map[string]any(descriptions(p.Value.Items))
		case len(p.Value.Properties) > 0:
			m[name] = map[string]any(descriptions(p))
		case p.Value.Description != "":
			m[name] = p.Value.Description
		}
	}
	for _, part := range s.Value.AllOf {
		maps.Copy(m, descriptions(part))
	}
	return m
}

// requiredIn returns the fields of a type that a schema of the document requires.
func requiredIn(t *testing.T, schema string, kind reflect.Type) object {
	t.Helper()
	required, m := openapitest.Document(t).Components.Schemas[schema].Value.Required, object{}
	for _, path := range fieldtest.Paths(kind) {
		if parts := strings.Split(path, "."); slices.Contains(required, parts[0]) {
			insert(m, parts)
		}
	}
	return m
}

// namedIn returns the fields of a type whose names stand in one of the files that match
// a pattern.
func namedIn(t *testing.T, pattern string, kind reflect.Type) object {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	m := object{}
	for _, path := range fieldtest.Paths(kind) {
		parts := strings.Split(path, ".")
		if strings.Contains(all.String(), `"`+parts[len(parts)-1]+`"`) {
			insert(m, parts)
		}
	}
	return m
}

// insert adds a path to a tree of names. A name that has others below it keeps them.
func insert(m map[string]any, parts []string) {
	if len(parts) == 1 {
		if m[parts[0]] == nil {
			m[parts[0]] = true
		}
		return
	}
	inner, is := m[parts[0]].(map[string]any)
	if !is {
		inner = map[string]any{}
		m[parts[0]] = inner
	}
	insert(inner, parts[1:])
}

// TestVolumeFieldsAreEverywhere is TestContainerFieldsAreEverywhere for volumes.
func TestVolumeFieldsAreEverywhere(t *testing.T) {
	h := newHarness(t)
	sent := object{"size_limit": 1e9, "storage": "fast", "name": "survival", "labels": object{"customer": "42"}}
	id := h.must("POST", "/volumes", sent).json["volume_id"].(string)
	kind := reflect.TypeFor[v1.VolumeSpec]()
	requireFields(t, kind, []place{
		{"a value in the request of this test", sent, nil},
		{"api/server/volumes.go: GET does not return it", h.must("GET", "/volumes/"+id, nil).json, nil},
		{"api/openapi.yaml: Volume with a description", described(t, "Volume"), nil},
		{"hack/e2e: no test sends it", namedIn(t, "../../hack/e2e/*_test.go", kind), nil},
	})
}

// tokenFields are the fields of a token that a request sets, by the name in the request.
var tokenFields = map[string]string{"name": "name", "ttl": "expires_at", "remove_on_use": "remove_on_use", "scopes": "scopes", "containers": "containers", "ssh_keys": "ssh_keys",
	"on_behalf_of": "on_behalf_of", "address": "address"}

// TestTokenFieldsAreReturned sets each field of a request for a token.
func TestTokenFieldsAreReturned(t *testing.T) {
	h := newHarness(t)
	h.container("mc", h.volume())
	sent := object{"name": "panel", "ttl": "5m", "remove_on_use": true, "scopes": []string{"read"}, "containers": []string{"mc"},
		"on_behalf_of": "alice", "address": "192.0.2.7",
		"ssh_keys": []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1Jq3kV0b9Y2Hq0kq0yVQ9n1N1jT8w3m4l5Z6c7d8e9"}}
	h.must("POST", "/auth/tokens", sent)
	schema := openapitest.Document(t).Paths.Value("/auth/tokens").Post.RequestBody.Value.Content.Get("application/json").Schema
	require.ElementsMatch(t, slices.Collect(maps.Keys(schema.Value.Properties)), slices.Collect(maps.Keys(tokenFields)),
		"api/openapi.yaml and tokenFields of this test")
	require.ElementsMatch(t, slices.Collect(maps.Keys(sent)), slices.Collect(maps.Keys(tokenFields)), "the request of this test")
	got := h.must("GET", "/auth/tokens", nil).json["tokens"].([]any)[0]
	for request, answer := range tokenFields {
		require.NotNil(t, at(got, answer), "%s of a request is not returned as %s", request, answer)
		require.NotNil(t, descriptions(schema)[request], "%s has no description in api/openapi.yaml", request)
	}
}
