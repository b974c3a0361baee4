package container

import (
	"context"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/store"
)

// Volumes returns a source of the containers whose volume has changed: what it occupies, whether its
// directory is there, or whether it is being restored.
func Volumes(s *store.Store) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		return store.Volumes.Source(s, store.StatusChanged)(ctx, func(id string) {
			for _, user := range store.Containers.IDsBy(s.Read(), id) {
				notify(user)
			}
		})
	}
}

// volumeMissing reports whether the container's status has that the directory of its
// volume is missing.
func volumeMissing(c v1.Container) bool {
	return v1.FindCondition(c.Status.Conditions, v1.VolumeReady).Status == v1.False
}

// lostVolume reports whether the directory of a container's volume is missing. While it
// is unknown, because the directory cannot be checked, the last record holds.
func lostVolume(c v1.Container, v v1.VolumeStatus) bool {
	return v.Missing() || volumeMissing(c) && !v.Ready()
}

// requireClaim returns why the claim of the container's volume is not ready; nil: it is, or there is none.
func (t *task) requireClaim() error {
	v, err := store.Volumes.Get(t.Store.Read(), t.c.Spec.VolumeID)
	if c := v1.FindCondition(v.Status.Conditions, v1.DirectoryReady); err == nil && c.Reason == v1.ReasonClaimPending {
		return fmt.Errorf("%w: %s", runtime.ErrMountMissing, c.Message)
	}
	return nil
}

// recordVolumeReady records that the directory of the volume is missing, or is there again,
// with an event. The container is not stopped: a directory that was moved is still the
// one that it uses.
func (t *task) recordVolumeReady() error {
	status, reason := v1.False, reasonVolumeMissing
	text := "the directory of the volume is missing on the host, and what the container writes may be lost: stop the container, then put " +
		"the directory back or restore a backup"
	if !t.o.VolumeMissing {
		status, reason, text = v1.True, reasonPresent, "the directory of the volume is there again"
		if t.o.Server.Running {
			text += ": restart the container, unless the same directory was moved back; until then it uses the one before"
		}
	}
	return t.amend(func(st *v1.ContainerStatus, now time.Time) {
		before := v1.FindCondition(st.Conditions, v1.VolumeReady).Message
		switch {
		case st.Phase.Active(), t.o.VolumeMissing && st.Message == "":
			st.Message = text
		case st.Message == before:
			st.Message = ""
		}
		setCondition(st, now, condition(v1.VolumeReady, status, reason, text))
	}, message{reason, text})
}

// observePressure compares the disk usage of a container with its limits.
func (t *task) observePressure(v v1.Volume) {
	run, o, limit := t.o.Server, &t.o, t.Roots.limit()
	used, diskLimit := v.Status.Usage(), v1.SmallestLimit(v.Spec, []v1.ContainerSpec{t.c.Spec})
	if exists(o.Install) && t.installs() {
		run = o.Install
	}
	root, known := t.Roots.of(t.c.Meta.ID, run)
	o.Runaway = limit > 0 && root.Bytes > limit+limit/4 // a graceful stop would take too long
	switch {
	case root.Exceeds(limit), !known && pressure(t.c) == v1.ReasonRootOverLimit:
		o.OverLimit, o.FreedByRemoval = v1.ReasonRootOverLimit, true
		if root.Unmeasured {
			o.Unmeasured = "what the container has written outside its volume could not be measured as a whole: it counts as more than " +
				"docker.root_limit"
		}
	case used.Exceeds(diskLimit):
		o.OverLimit = v1.ReasonOverLimit
		if measured := v1.FindCondition(v.Status.Conditions, v1.UsageMeasured); measured.Status == v1.False {
			o.Unmeasured = measured.Message
		}
	case used.Add(withoutSlack(root.Usage)).Exceeds(diskLimit):
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
			setCondition(st, now, condition(v1.DiskPressure, v1.False, "WithinLimit", "the volume is within its limit"))
		}, message{text: "the volume is within its limit again"})
	}
	text := t.o.pressureText()
	return t.report("", text, func(st *v1.ContainerStatus, now time.Time) {
		setCondition(st, now, condition(v1.DiskPressure, v1.True, t.o.OverLimit, text))
	})
}

// pressureText returns the message of disk pressure: the cause, and what follows.
func (o Observed) pressureText() string {
	cause, follows := o.Unmeasured, fmt.Sprintf(". A container that runs is stopped after %s", pressureGrace)
	switch {
	case o.OverLimit == v1.ReasonRootOverLimit && cause != "":
		follows = ". The container is stopped, and what it wrote there is removed"
	case o.OverLimit == v1.ReasonRootOverLimit:
		cause, follows = "the container has written more than docker.root_limit outside its volume",
			": it is stopped, and what it wrote there is removed"
	case o.FreedByRemoval:
		cause = "the volume and what the container has written outside it are over the limit: make space"
	case cause == "":
		cause = "the volume is over its limit: make space"
	}
	return cause + follows
}
