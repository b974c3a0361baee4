package container

import (
	"fmt"
	"time"

	v1 "berth/api/v1"
)

// diskLimit returns the smaller limit of the container and the volume in bytes; 0
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

// space is the disk limit of a container, the usage of its volume, and whether the
// volume is being restored or its directory is missing.
type space struct {
	limit     int64 // bytes; 0 is none
	volume    v1.Usage
	restoring bool
	missing   bool

	unmeasured string // why the volume counts as over its limit, although it was not measured whole; empty: it was
}

// unmeasured returns the message of a volume that is not measured whole.
func unmeasured(v v1.VolumeStatus) string {
	if c := v1.FindCondition(v.Conditions, v1.UsageMeasured); c.Status == v1.False {
		return c.Message
	}
	return ""
}

// observePressure compares the disk usage of a container with its limits.
func (t *task) observePressure(s space) {
	run, o, limit := t.o.Server, &t.o, t.Roots.limit()
	if exists(o.Install) && t.c.Status.ObservedInstall != t.c.Spec.InstallGeneration {
		run = o.Install
	}
	root, known := t.Roots.of(t.c.Meta.ID, run)
	o.Runaway = limit > 0 && root.Bytes > limit+limit/4 // a graceful stop would take too long
	switch {
	case root.Exceeds(limit), !known && pressure(t.c) == v1.ReasonRootOverLimit:
		o.OverLimit, o.FreedByRemoval = v1.ReasonRootOverLimit, true
		if root.Unmeasured {
			o.Unmeasured = fmt.Sprintf("what the container has written outside its volume could not be measured within %s: it counts as more than docker.root_limit", rootTimeout)
		}
	case s.volume.Exceeds(s.limit):
		o.OverLimit, o.Unmeasured = v1.ReasonOverLimit, s.unmeasured
	case s.volume.Add(withoutSlack(root.Usage)).Exceeds(s.limit):
		o.OverLimit, o.FreedByRemoval = v1.ReasonOverLimit, true
	}
}

// pressure returns the reason of the recorded disk pressure; empty for none. Under
// disk pressure a run is stopped after pressureLimit, and none is started.
func pressure(c v1.Container) string {
	if condition := v1.FindCondition(c.Status.Conditions, v1.DiskPressure); condition.Status == v1.True {
		return condition.Reason
	}
	return ""
}

// underDiskPressure reports whether disk pressure is recorded.
func underDiskPressure(c v1.Container) bool { return pressure(c) != "" }

// pressureLimit returns the grace period in which a running container may free
// space. It is 0 for files outside the volume, which threaten all containers of the
// host.
func pressureLimit(c v1.Container) time.Duration {
	if pressure(c) == v1.ReasonRootOverLimit {
		return 0
	}
	return pressureGrace
}

// stopLimit returns the grace period of a graceful stop.
func stopLimit(c v1.Container) time.Duration {
	if pressure(c) == v1.ReasonRootOverLimit {
		return min(stopTimeout(c.Spec), rootStopLimit)
	}
	return stopTimeout(c.Spec)
}

// recordPressure records the begin or the end of disk pressure.
func (t *task) recordPressure() error {
	if t.o.OverLimit == "" {
		return t.record(func(st *v1.ContainerStatus, now time.Time) {
			setCondition(st, now, v1.DiskPressure, v1.False, "WithinLimit", "the volume is within its limit")
		}, message{text: "the volume is within its limit again"})
	}
	text := t.o.pressureText()
	return t.report("", text, func(st *v1.ContainerStatus, now time.Time) {
		setCondition(st, now, v1.DiskPressure, v1.True, t.o.OverLimit, text)
	})
}

// pressureText returns the message of disk pressure: the cause, and what follows.
func (o Observed) pressureText() string {
	cause, follows := o.Unmeasured, fmt.Sprintf(". A container that runs is stopped after %s", pressureGrace)
	switch {
	case o.OverLimit == v1.ReasonRootOverLimit && cause != "":
		follows = ". The container is stopped, and what it wrote there is removed"
	case o.OverLimit == v1.ReasonRootOverLimit:
		cause, follows = "the container has written more than docker.root_limit outside its volume", ": it is stopped, and what it wrote there is removed"
	case o.FreedByRemoval:
		cause = "the volume and what the container has written outside it are over the limit: make space"
	case cause == "":
		cause = "the volume is over its limit: make space"
	}
	return cause + follows
}
