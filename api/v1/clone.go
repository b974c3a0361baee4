package v1

import (
	"maps"
	"slices"
)

// The Clone methods return deep copies: a clone shares no memory with its
// original. TestCloneIsDeep fills and compares every field.

// Clone returns a deep copy of s.
func (s ContainerSpec) Clone() ContainerSpec {
	s.Ports = slices.Clone(s.Ports)
	s.Env = maps.Clone(s.Env)
	s.Labels = maps.Clone(s.Labels)
	s.Mounts = slices.Clone(s.Mounts)
	s.Limits.OOMKill = clonePointer(s.Limits.OOMKill)
	s.ConfigFiles = slices.Clone(s.ConfigFiles)
	for i := range s.ConfigFiles {
		s.ConfigFiles[i].Set = maps.Clone(s.ConfigFiles[i].Set)
	}
	return s
}

// Clone returns a deep copy of s.
func (s ContainerStatus) Clone() ContainerStatus {
	s.Conditions = slices.Clone(s.Conditions)
	s.StartedAt = clonePointer(s.StartedAt)
	s.FinishedAt = clonePointer(s.FinishedAt)
	s.ExitCode = clonePointer(s.ExitCode)
	s.NextRetryAt = clonePointer(s.NextRetryAt)
	s.UnreadySince = clonePointer(s.UnreadySince)
	return s
}

// Clone returns a deep copy of s.
func (s VolumeSpec) Clone() VolumeSpec {
	s.Labels = maps.Clone(s.Labels)
	return s
}

// Clone returns a deep copy of s.
func (s VolumeStatus) Clone() VolumeStatus {
	s.Conditions = slices.Clone(s.Conditions)
	return s
}

// Clone returns a deep copy of s.
func (s PoolSpec) Clone() PoolSpec {
	s.Ports, s.Flagged = s.Ports.Clone(), s.Flagged.Clone()
	return s
}

// Clone returns a deep copy of s.
func (s PoolStatus) Clone() PoolStatus {
	s.Allowed = s.Allowed.Clone()
	return s
}

// Clone returns a deep copy of s.
func (s TokenSpec) Clone() TokenSpec {
	s.Scopes = slices.Clone(s.Scopes)
	s.Containers = slices.Clone(s.Containers)
	s.SSHKeys = slices.Clone(s.SSHKeys)
	return s
}

// Clone returns a deep copy of s.
func (s TokenStatus) Clone() TokenStatus { return s }

// Clone returns a deep copy of s.
func (s BackupSpec) Clone() BackupSpec {
	s.Ignore, s.Quiesce = slices.Clone(s.Ignore), clonePointer(s.Quiesce)
	return s
}

// Clone returns a deep copy of s.
func (s BackupStatus) Clone() BackupStatus {
	s.Skipped = slices.Clone(s.Skipped)
	s.StartedAt, s.FinishedAt = clonePointer(s.StartedAt), clonePointer(s.FinishedAt)
	return s
}

// Clone returns a deep copy of s.
func (s PolicySpec) Clone() PolicySpec {
	s.Ignore, s.Quiesce = slices.Clone(s.Ignore), clonePointer(s.Quiesce)
	return s
}

// Clone returns a deep copy of s.
func (s PolicyStatus) Clone() PolicyStatus {
	s.NextRunAt = clonePointer(s.NextRunAt)
	return s
}

// Clone returns a deep copy of s.
func (s RestoreSpec) Clone() RestoreSpec { return s }

// Clone returns a deep copy of s.
func (s RestoreStatus) Clone() RestoreStatus {
	s.StartedAt, s.FinishedAt = clonePointer(s.StartedAt), clonePointer(s.FinishedAt)
	return s
}

func clonePointer[V any](p *V) *V {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// Clone returns a deep copy of s.
func (s PullSpec) Clone() PullSpec { return s }

// Clone returns a deep copy of s.
func (s PullStatus) Clone() PullStatus {
	s.Total, s.FinishedAt = clonePointer(s.Total), clonePointer(s.FinishedAt)
	return s
}
