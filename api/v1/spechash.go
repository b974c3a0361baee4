package v1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
)

// SpecHash returns a hash that changes when the server container has to be created
// again. A label of the container on the engine holds it, which distinguishes a
// container of the current spec from one of an older spec.
//
// A limit whose value changes is updated in the existing container. A limit that is
// added or removed needs a new container (Docker takes 0 for unchanged). A
// new installation needs a new container too.
//
// An upgrade of berth must not change the hash of a stored spec. So the fields of the first
// version are a fixed list, with the tag recreate:"first". A later field with the tag
// recreate:"named" is a part of the hash only if it differs from its default, with its name:
// two such fields with the same value must not have the same hash.
func (s ContainerSpec) SpecHash() string {
	s = WithDefaults(s)
	// A request may have an empty list where the stored spec has none.
	s.Ports, s.Env, s.Labels, s.Mounts = orNil(s.Ports), orNilMap(s.Env), orNilMap(s.Labels), orNil(s.Mounts)
	type limits struct{ Memory, CPU, Pids, Cpuset bool }
	parts := []any{s.InstallGeneration, s.Image, s.VolumeID, s.StartupCommand, s.Ports, s.Env, s.User, s.Workdir, *s.TTY,
		s.Labels, pinned(s.Mounts), s.Stop.Signal, s.Limits.IOWeight,
		limits{s.Limits.Memory > 0, s.Limits.CPU > 0, s.Limits.Pids > 0, s.Cpuset != ""}}
	parts = append(parts, named(s)...)
	if s.Limits.Swap == UnlimitedSwap {
		parts = append(parts, []string{"limits.swap", "unlimited"})
	}
	if s.Limits.WithoutOOMKill() {
		parts = append(parts, []string{"limits.oom_kill", "false"})
	}
	return hash(parts...)
}

// named returns the parts of the hash for the fields with the tag recreate:"named": the name
// and the value. A switch has no value, as only one differs from its default.
func named(s ContainerSpec) (parts []any) {
	value, initial := reflect.ValueOf(s), reflect.ValueOf(WithDefaults(ContainerSpec{}))
	for _, f := range Fields(value.Type()) {
		v := reflect.Indirect(value.FieldByIndex(f.Index))
		if f.Tag.Get("recreate") != "named" || reflect.DeepEqual(v.Interface(), reflect.Indirect(initial.FieldByIndex(f.Index)).Interface()) {
			continue
		}
		if v.Kind() == reflect.Bool {
			parts = append(parts, []any{f.Name})
		} else {
			parts = append(parts, []any{f.Name, v.Interface()})
		}
	}
	return parts
}

// pinned returns the part of the mounts in the hash. Containers of older versions, whose
// mounts the engine resolves by the client's own paths, are created again.
func pinned(mounts []Mount) any {
	if len(mounts) == 0 {
		return mounts
	}
	return []any{"pinned", mounts}
}

func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

func orNilMap[T any](m map[string]T) map[string]T {
	if len(m) == 0 {
		return nil
	}
	return m
}

// InstallHash returns a hash that changes when the installation has to run again.
func (s ContainerSpec) InstallHash() string {
	parts := []any{s.InstallGeneration, s.VolumeID}
	if s.InstallUser != "" { // an upgrade of berth must not begin an installation again
		parts = append(parts, []string{"install_user", s.InstallUser})
	}
	if !reflect.DeepEqual(s.Placement, Placement{}) {
		parts = append(parts, []any{"placement", s.Placement})
	}
	return hash(parts...)
}

func hash(parts ...any) string {
	text, _ := json.Marshal(parts) // plain data: it cannot fail
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
