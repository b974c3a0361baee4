package volume

import (
	"time"

	v1 "berth/api/v1"
)

// messageOf returns the message of a reason of v1.UsageMeasured.
func messageOf(reason string) string {
	switch reason {
	case v1.ReasonTooDeep:
		return "folders of the volume are nested too deeply to be measured, so it counts as over its limit: remove them"
	case v1.ReasonUnreadable:
		return "berth may not read a folder of the volume, so it counts as over its limit: let berth's user read it, or run berth as root"
	}
	return "the volume has more names than can be measured, so it counts as over its limit: remove files"
}

// notMeasured returns the recorded reason why a volume is not measured whole; empty if it is.
func notMeasured(s v1.VolumeStatus) string {
	if c := v1.FindCondition(s.Conditions, v1.UsageMeasured); c.Status == v1.False {
		return c.Reason
	}
	return ""
}

// setMeasured sets the condition UsageMeasured, and reports whether it is False for another
// reason than before. A volume that was always measured whole has none.
func setMeasured(s *v1.VolumeStatus, reason string, now time.Time) (worse bool) {
	before := v1.FindCondition(s.Conditions, v1.UsageMeasured)
	c := v1.Condition{Type: v1.UsageMeasured, Status: v1.False, Reason: reason}
	switch {
	case reason != "":
		c.Message = messageOf(reason)
	case before.Status == "":
		return false
	default:
		c.Status, c.Reason, c.Message = v1.True, "Measured", "the usage of the volume is measured"
	}
	s.Conditions = v1.SetCondition(s.Conditions, c, now)
	return c.Status == v1.False && c.Reason != before.Reason
}
