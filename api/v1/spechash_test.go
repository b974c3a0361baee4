package v1

import (
	"maps"
	"reflect"
	"slices"
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
	require.Equal(t, "4c2f67b715553b2e", hashedSpec().SpecHash())
	require.Equal(t, "4a29b5f2e5e86862", ContainerSpec{Image: "i"}.SpecHash())
	require.Equal(t, "ac05f2658df384fa", hashedSpec().InstallHash())
}

// fieldsOutsideHash are the fields of the spec that take effect without another
// container, with the place that applies them.
var fieldsOutsideHash = map[string]string{
	"InstallScript":  "the installation reads it",
	"InstallImage":   "the installation reads it",
	"InstallTimeout": "the installation reads it",
	"StartPattern":   "the console reads it",
	"RestartPolicy":  "the plan reads it at the next exit",
	"RegistryAuth":   "the next pull reads it",
	"Power":          "the plan reads it",
	"RunGeneration":  "the plan reads it",
	"KillGeneration": "the plan reads it",
	"Cpuset":         "the container is updated; to add or to remove it needs another one",
}

// TestSpecHashCoversFields changes one field after the other: it either changes the
// hash or is listed, so that a new field is not forgotten.
func TestSpecHashCoversFields(t *testing.T) {
	outside := map[string]bool{}
	kind := reflect.TypeFor[ContainerSpec]()
	for i := range kind.NumField() {
		s := hashedSpec()
		change(t, reflect.ValueOf(&s).Elem().Field(i))
		if s.SpecHash() == hashedSpec().SpecHash() {
			outside[kind.Field(i).Name] = true
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(fieldsOutsideHash)), slices.Sorted(maps.Keys(outside)))
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
	case reflect.Map, reflect.Slice, reflect.Struct:
		v.SetZero()
	default:
		t.Fatalf("no other value for a %s", v.Kind())
	}
}
