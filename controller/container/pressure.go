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

// space is what a container may occupy on disk, and what its volume does.
type space struct {
	limit  int64 // bytes; 0 is none
	volume v1.Usage
}

// pressure compares what a container occupies with its limits. It returns the
// reason of the condition DiskPressure, empty for none, and whether there would
// be none without what was written outside the volume.
func (r *Reconciler) pressure(c v1.Container, o Observed, s space) (reason string, shed bool) {
	run := o.Server
	if exists(o.Install) && c.Status.ObservedInstall != c.Spec.InstallGeneration {
		run = o.Install
	}
	root, known := r.Roots.of(c.Meta.ID, run)
	switch {
	case root.Exceeds(r.Roots.limit()), !known && pressure(c) == v1.ReasonRootOverLimit:
		return v1.ReasonRootOverLimit, true
	case s.volume.Exceeds(s.limit):
		return v1.ReasonOverLimit, false
	case s.volume.Add(beyondSlack(root)).Exceeds(s.limit):
		return v1.ReasonOverLimit, true
	}
	return "", false
}

// pressure returns why a container is known to be under disk pressure: what runs
// is stopped after pressureLimit, and nothing is started. Empty: it is not.
func pressure(c v1.Container) string {
	if condition := v1.FindCondition(c.Status.Conditions, v1.DiskPressure); condition.Status == v1.True {
		return condition.Reason
	}
	return ""
}

// underDiskPressure reports whether a container is known to be under disk pressure.
func underDiskPressure(c v1.Container) bool { return pressure(c) != "" }

// pressureLimit is how long what runs may make space. What is written outside
// the volume threatens all containers of the host, and is stopped at once.
func pressureLimit(c v1.Container) time.Duration {
	if pressure(c) == v1.ReasonRootOverLimit {
		return 0
	}
	return pressureGrace
}

// stopLimit is how long a run that was asked to exit may take.
func stopLimit(c v1.Container) time.Duration {
	if pressure(c) == v1.ReasonRootOverLimit {
		return min(stopTimeout(c.Spec), rootStopLimit)
	}
	return stopTimeout(c.Spec)
}

// installLeft is how long the installer may still run.
func installLeft(c v1.Container, o Observed) time.Duration {
	left := installTimeout(c.Spec) - o.InstallFor
	if underDiskPressure(c) {
		left = min(left, pressureLimit(c)-min(o.PressureFor, o.InstallFor))
	}
	return left
}

// recordPressure records that the container is under disk pressure, or no longer.
func (s step) recordPressure() error {
	switch {
	case s.o.OverLimit == "":
		return s.record(func(st *v1.ContainerStatus, now time.Time) {
			set(st, now, v1.DiskPressure, v1.False, "WithinLimit", "the volume is within its limit")
		}, "the volume is within its limit again")
	case s.o.OverLimit == v1.ReasonRootOverLimit:
		return s.recordPressed("the container has written more than docker.root_limit outside its volume: it is stopped, and what it wrote there is removed")
	case s.o.Shed:
		return s.recordPressed(fmt.Sprintf("the volume and what the container has written outside it are over the limit: make space, or the container is stopped in %s", pressureGrace))
	}
	return s.recordPressed(fmt.Sprintf("the volume is over its limit: make space, or the container is stopped in %s", pressureGrace))
}

func (s step) recordPressed(text string) error {
	return s.record(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		set(st, now, v1.DiskPressure, v1.True, s.o.OverLimit, text)
	}, text)
}
