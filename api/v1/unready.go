package v1

import "cmp"

// Unready returns why a container that should run does not run, or why one that
// should be installed is not: the reason of a condition, or Installing, Starting,
// Stopping or Pending. It returns "" if nothing is missing: a container that runs,
// that was stopped by request, or whose restart policy ended it.
func Unready(s ContainerSpec, st ContainerStatus) string {
	reasonOf := func(kind, status string) string {
		if c := FindCondition(st.Conditions, kind); c.Status == status {
			return c.Reason
		}
		return ""
	}
	image := reasonOf(ImageAvailable, False)
	if image == "" && FindCondition(st.Conditions, ImageAvailable).Reason == ReasonPullFailed {
		image = ReasonPullFailed
	}
	switch st.Phase {
	case Running, Deleting:
		return ""
	case Installing, "":
		return cmp.Or(image, reasonOf(Installed, Unknown), "Installing")
	case Failed:
		return cmp.Or(image, reasonOf(Installed, False), "Failed")
	}
	switch {
	case s.Power != PowerOn:
		return ""
	case st.Phase == Starting:
		return cmp.Or(reasonOf(StartPatternNotMatched, True), "Starting")
	case st.Phase == Stopping:
		return "Stopping"
	}
	reason := cmp.Or(reasonOf(DiskPressure, True), image, reasonOf(ImageCurrent, Unknown), reasonOf(Reconciled, False))
	if reason == "" && st.NextRetryAt == nil && st.ObservedRun == s.RunGeneration {
		return "" // the restart policy ended it
	}
	return cmp.Or(reason, reasonOf(Started, False), "Pending")
}
