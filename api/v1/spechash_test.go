package v1

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hashedSpec has a value in every field that the hash of an older berth covers. Do not
// change it: add a new field to fieldsOutsideHash or to a test of its own.
func hashedSpec() ContainerSpec {
	return ContainerSpec{
		Image: "i:1", VolumeID: "v", StartupCommand: "run", Ports: []Port{{IP: "127.0.0.1", Port: 1, Protocol: "tcp"}},
		Env: map[string]string{"A": "b"}, User: "1", Workdir: "/w", TTY: true, Labels: map[string]string{"l": "m"},
		Mounts: []Mount{{Source: "/s", Target: "/t"}}, Stop: Stop{Signal: "SIGINT"}, InstallGeneration: 2, Cpuset: "0",
		Limits: Limits{Memory: 1 << 30, CPU: 1, Pids: 10, IOWeight: 100},
	}
}

// TestSpecHashIsPinned: an upgrade of berth must not change the hash of a stored spec.
// With another hash every stopped container is created again, and every running one
// with its next run. A new field that is empty must not change it either.
func TestSpecHashIsPinned(t *testing.T) {
	const remedy = "an upgrade would create every container again: do not change this value; append a new field to the parts of the hash only if it is set"
	require.Equal(t, "4c2f67b715553b2e", hashedSpec().SpecHash(), remedy)
	require.Equal(t, "4a29b5f2e5e86862", ContainerSpec{Image: "i"}.SpecHash(), remedy)
	require.Equal(t, "ac05f2658df384fa", hashedSpec().InstallHash(), remedy)
}

// fieldsOutsideHash are the fields of the spec that take effect without another
// container, with the place that applies them.
var fieldsOutsideHash = map[string]string{
	"InstallScript":     "the installation reads it",
	"InstallImage":      "the installation reads it",
	"InstallTimeout":    "the installation reads it",
	"InstallMount":      "the installation reads it",
	"InstallEntrypoint": "the installation reads it",
	"PullPolicy":        "the plan reads it before the next start",
	"StartPattern":      "the console reads it",
	"StartTimeout":      "the plan reads it",
	"RestartPolicy":     "the plan reads it at the next exit",
	"RegistryAuth":      "the next pull reads it",
	"RequestedBy":       "it says who asked, not for what",
	"Power":             "the plan reads it",
	"ConfigFiles":       "the next start reads it",
	"RunGeneration":     "the plan reads it",
	"KillGeneration":    "the plan reads it",
	"Cpuset":            "the container is updated; to add or to remove it needs another one",
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

// TestSpecHashCoversFields changes one field after the other: it either changes the
// hash or is listed, so that a new field is not forgotten.
func TestSpecHashCoversFields(t *testing.T) {
	unknown := maps.Clone(fieldsOutsideHash)
	kind := reflect.TypeFor[ContainerSpec]()
	for i := range kind.NumField() {
		s, name := hashedSpec(), kind.Field(i).Name
		change(t, reflect.ValueOf(&s).Elem().Field(i))
		hashed := s.SpecHash() != hashedSpec().SpecHash()
		if listed := fieldsOutsideHash[name] != ""; hashed == listed {
			t.Errorf("the field %s of ContainerSpec must be either a part of SpecHash in api/v1/spechash.go, if it needs another container "+
				"(appended only if it is set, as hostname is), or in fieldsOutsideHash of this test", name)
		}
		delete(unknown, name)
	}
	require.Empty(t, unknown, "fieldsOutsideHash has names that are not fields")
}

// change gives a field another value. In a struct it empties every field.
func change(t *testing.T, v reflect.Value) {
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
	case reflect.Pointer: // nil is the default, which is not the zero value
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Map, reflect.Slice, reflect.Struct:
		v.SetZero()
	default:
		t.Fatalf("no other value for a %s", v.Kind())
	}
}
