package v1

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hashedSpec has a value in every field that the hash of an older berth covers. Do not
// change it: a new field with the tag recreate:"named" is not a part of these hashes.
func hashedSpec() ContainerSpec {
	return ContainerSpec{
		Image: "i:1", VolumeID: "v", StartupCommand: "run", Ports: []Port{{IP: "127.0.0.1", Port: 1, Protocol: "tcp"}},
		Env: map[string]string{"A": "b"}, User: "1", Workdir: "/w", TTY: new(true), Labels: map[string]string{"l": "m"},
		Mounts: []Mount{{Source: "/s", Target: "/t"}}, Stop: Stop{Signal: "SIGINT"}, InstallGeneration: 2, Cpuset: "0",
		Limits: Limits{Memory: 1 << 30, CPU: 1, Pids: 10, IOWeight: 100},
	}
}

// TestSpecHashIsPinned: an upgrade of berth must not change the hash of a stored spec.
// With another hash every stopped container is created again, and every running one
// with its next run. A new field that is empty must not change it either.
func TestSpecHashIsPinned(t *testing.T) {
	const remedy = "an upgrade would create every container again: do not change this value; a new field has the tag recreate:\"named\""
	require.Equal(t, "4c2f67b715553b2e", hashedSpec().SpecHash(), remedy)
	require.Equal(t, "4a29b5f2e5e86862", ContainerSpec{Image: "i", TTY: new(false)}.SpecHash(), remedy)
	require.Equal(t, "ac05f2658df384fa", hashedSpec().InstallHash(), remedy)
}

// TestSpecHashCoversLimits: no engine changes these limits in a container that exists.
func TestSpecHashCoversLimits(t *testing.T) {
	no, yes := false, true
	hashes := map[string]Limits{}
	for _, l := range []Limits{{Memory: 1}, {Memory: 1, Swap: UnlimitedSwap}, {Memory: 1, OOMKill: &no}, {Memory: 1, Swap: UnlimitedSwap, OOMKill: &no}} {
		hashes[ContainerSpec{Limits: l}.SpecHash()] = l
	}
	require.Len(t, hashes, 4)
	require.Contains(t, hashes, ContainerSpec{Limits: Limits{Memory: 2, Swap: 1, OOMKill: &yes}}.SpecHash())
}

// TestSpecHashFollowsTheTags changes one field after the other: it changes the hash if it has
// the tag recreate.
func TestSpecHashFollowsTheTags(t *testing.T) {
	kind := reflect.TypeFor[ContainerSpec]()
	for i := range kind.NumField() {
		s, field := hashedSpec(), kind.Field(i)
		change(t, reflect.ValueOf(&s).Elem().Field(i), field.Tag.Get("default"))
		require.Equal(t, field.Tag.Get("recreate") != "", s.SpecHash() != hashedSpec().SpecHash(), field.Name)
	}
}

// TestStoredSpecsKeepTheirHash decodes records of older versions.
func TestStoredSpecsKeepTheirHash(t *testing.T) {
	for text, want := range map[string]string{
		`{"image":"i","volume_id":"","startup_command":"","start_pattern":"","install_script":"","ports":null,"limits":{"memory":0,"cpu":0},"tty":false,"stop":{},"restart_policy":{"mode":""},"power":"","install":0,"run":0}`:                                                                                                                                                                                      "4a29b5f2e5e86862",
		`{"image":"i:1","volume_id":"v","startup_command":"run","ports":[{"ip":"127.0.0.1","port":1,"protocol":"tcp"}],"limits":{"memory":1073741824,"cpu":1,"pids":10,"io_weight":100},"env":{"A":"b"},"cpuset":"0","user":"1","workdir":"/w","hostname":"h","timezone":"UTC","read_only_root":true,"tty":true,"labels":{"l":"m"},"mounts":[{"source":"/s","target":"/t"}],"stop":{"signal":"SIGINT"},"install":2}`: "2e7eb1ba84f0b043",
	} {
		var s ContainerSpec
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		require.Equal(t, want, s.SpecHash(), text)
	}
}

// TestDefaultsAreValid requires that a field without a value has that of its tag.
func TestDefaultsAreValid(t *testing.T) {
	s := WithDefaults(ContainerSpec{})
	require.Equal(t, []any{PullMissing, "", false, true, RestartOnFailure}, []any{s.PullPolicy, s.Script(), *s.ReadOnlyRoot, *s.TTY, s.RestartPolicy.Mode})
	require.Equal(t, hashedSpec().TTY, WithDefaults(hashedSpec()).TTY)
}

// change gives a field another value. In a struct it empties every field, or sets the first text of one that is empty.
func change(t *testing.T, v reflect.Value, initial string) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int64:
		v.SetInt(v.Int() + int64(time.Second))
	case reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.Pointer:
		if v.IsNil() {
			setText(v, initial)
		}
		change(t, v.Elem(), "")
	case reflect.Struct:
		if v.IsZero() {
			for i := range v.NumField() {
				if v.Field(i).Kind() == reflect.String {
					change(t, v.Field(i), "")
					return
				}
			}
		}
		v.SetZero()
	case reflect.Map, reflect.Slice:
		v.SetZero()
	default:
		t.Fatalf("no other value for a %s", v.Kind())
	}
}

// TestSpecHashOfEmptyLists: a container is not created again because its request has an empty list,
// which the store leaves out.
func TestSpecHashOfEmptyLists(t *testing.T) {
	empty := ContainerSpec{Image: "i", Ports: []Port{}, Env: map[string]string{}, Labels: map[string]string{}, Mounts: []Mount{}}
	require.Equal(t, ContainerSpec{Image: "i"}.SpecHash(), empty.SpecHash())
	text, err := json.Marshal(empty)
	require.NoError(t, err)
	var stored ContainerSpec
	require.NoError(t, json.Unmarshal(text, &stored))
	require.Equal(t, stored.SpecHash(), empty.SpecHash())
}
