package container

import v1 "berth/api/v1"

// actorOf returns who caused the transition from before to st: the actor of the
// request that asked for it, until its run or its installation has ended. Crashes,
// retries and repairs are berth's own.
func actorOf(spec v1.ContainerSpec, before, st v1.ContainerStatus) v1.Actor {
	actor, by := v1.Controller(), spec.RequestedBy
	switch st.Phase {
	case v1.Installing, v1.Ready, v1.Failed:
		actor = by.Install
	case v1.Deleting:
		actor = by.Delete
	case v1.Starting:
		if st.ObservedRun != before.ObservedRun {
			actor = by.Run
		}
	case v1.Running:
		actor = before.Actor
	case v1.Stopping:
		actor = stopper(spec, before, st)
	case v1.Exit:
		actor = ender(spec, before, st)
	}
	if actor == (v1.Actor{}) { // an older version stored the request
		return v1.Controller()
	}
	return actor
}

// stopper returns who caused the graceful stop of a run.
func stopper(spec v1.ContainerSpec, before, st v1.ContainerStatus) v1.Actor {
	switch {
	case st.Unrequested:
		return v1.Controller()
	case before.ObservedInstall != spec.InstallGeneration:
		return spec.RequestedBy.Install
	case spec.Power == v1.PowerOff:
		return spec.RequestedBy.Stop
	case before.ObservedRun != spec.RunGeneration:
		return spec.RequestedBy.Run
	}
	return v1.Controller() // disk pressure
}

// ender returns who caused the exit of a run: who had it killed, or who caused the
// stop, or the start that the engine refused.
func ender(spec v1.ContainerSpec, before, st v1.ContainerStatus) v1.Actor {
	killed := spec.KillGeneration > 0 && before.ObservedRun <= spec.KillGeneration
	reason := v1.FindCondition(st.Conditions, v1.Started).Reason
	refused := before.Phase == v1.Starting && st.StartedAt == nil
	switch {
	case spec.Power == v1.PowerOff && (killed || reason == reasonNotStarted):
		return spec.RequestedBy.Stop
	case before.Phase == v1.Stopping, refused && reason != reasonRemoved && reason != reasonNotStarted:
		return before.Actor
	}
	return v1.Controller()
}
