package v1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// SpecHash changes when the server container must be made anew. It is kept in the
// engine as a label, so that a container found there can be told from one that
// was made from an older spec.
//
// A limit that only changes its value is changed live; one that appears or
// vanishes needs a new container (platform.md: 0 means unchanged to Docker). A
// new installation starts from a new container too.
func (s ContainerSpec) SpecHash() string {
	type limits struct{ Memory, CPU, Pids, Cpuset bool }
	return hash(s.InstallGeneration, s.Image, s.VolumeID, s.StartupCommand, s.Ports, s.Env, s.User, s.Workdir, s.TTY,
		s.Labels, pinned(s.Mounts), s.Stop.Signal, s.Limits.IOWeight,
		limits{s.Limits.Memory > 0, s.Limits.CPU > 0, s.Limits.Pids > 0, s.Cpuset != ""})
}

// pinned is mounts in the hash: containers whose mounts the engine resolves by
// the client's own paths, as those of older versions, are created again.
func pinned(mounts []Mount) any {
	if len(mounts) == 0 {
		return mounts
	}
	return []any{"pinned", mounts}
}

// InstallHash changes when the installation must be run anew.
func (s ContainerSpec) InstallHash() string {
	return hash(s.InstallGeneration, s.VolumeID)
}

func hash(parts ...any) string {
	text, _ := json.Marshal(parts) // plain data: it cannot fail
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
