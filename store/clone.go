package store

import (
	"maps"
	"slices"

	v1 "berth/api/v1"
)

// Clones share nothing with what they were made of. A test walks every field.

func cloneContainerSpec(s v1.ContainerSpec) v1.ContainerSpec {
	s.Ports = slices.Clone(s.Ports)
	s.Env = maps.Clone(s.Env)
	s.Labels = maps.Clone(s.Labels)
	s.Mounts = slices.Clone(s.Mounts)
	return s
}

func cloneContainerStatus(s v1.ContainerStatus) v1.ContainerStatus {
	s.Conditions = slices.Clone(s.Conditions)
	s.StartedAt = clonePointer(s.StartedAt)
	s.FinishedAt = clonePointer(s.FinishedAt)
	s.ExitCode = clonePointer(s.ExitCode)
	s.NextRetryAt = clonePointer(s.NextRetryAt)
	return s
}

func cloneVolumeSpec(s v1.VolumeSpec) v1.VolumeSpec { return s }

func cloneVolumeStatus(s v1.VolumeStatus) v1.VolumeStatus {
	s.Conditions = slices.Clone(s.Conditions)
	return s
}

func clonePoolSpec(s v1.PoolSpec) v1.PoolSpec {
	s.Ports, s.Flagged = s.Ports.Clone(), s.Flagged.Clone()
	return s
}

func clonePoolStatus(s v1.PoolStatus) v1.PoolStatus {
	s.Allowed = s.Allowed.Clone()
	return s
}

func cloneTokenSpec(s v1.TokenSpec) v1.TokenSpec {
	s.Scopes = slices.Clone(s.Scopes)
	s.Containers = slices.Clone(s.Containers)
	return s
}

func cloneTokenStatus(s v1.TokenStatus) v1.TokenStatus { return s }

func clonePointer[V any](p *V) *V {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
