package container

import (
	"fmt"
	"time"

	v1 "berth/api/v1"
)

// diskLimit is the smaller one of the container's and the volume's, in bytes; 0
// is no limit.
func diskLimit(s v1.ContainerSpec, v v1.VolumeSpec) int64 {
	switch {
	case s.Limits.Disk == 0:
		return v.SizeLimit
	case v.SizeLimit == 0:
		return s.Limits.Disk
	}
	return min(s.Limits.Disk, v.SizeLimit)
}

// notePressure tells that the volume is over its limit, or no longer.
func (s step) notePressure() error {
	if !s.o.Over {
		return s.note(func(st *v1.ContainerStatus, now time.Time) {
			set(st, now, v1.DiskPressure, v1.False, "WithinLimit", "the volume is within its limit")
		}, "the volume is within its limit again")
	}
	text := fmt.Sprintf("the volume is over its limit: make space, or the container is stopped in %s", pressureGrace)
	return s.note(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		set(st, now, v1.DiskPressure, v1.True, "OverLimit", text)
	}, text)
}
