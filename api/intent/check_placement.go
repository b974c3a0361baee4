package intent

import (
	"slices"

	v1 "berth/api/v1"
)

// maxPlacement bounds the labels and the tolerations of a placement.
const maxPlacement = 32

// checkPlacement adds the errors of a placement, which the operator must permit, and completes it.
func checkPlacement(f *v1.FieldErrors, p Policy, place *v1.Placement) {
	if slices.Contains(p.Lacks, "placement") {
		return // checkEngine reports it
	}
	*place = p.Placement.Place(*place)
	if len(place.NodeSelector) > maxPlacement || len(place.Tolerations) > maxPlacement {
		f.Add("placement", "must have at most %d labels and %d tolerations", maxPlacement, maxPlacement)
		return
	}
	for _, rule := range place.Rules() {
		if !p.Placement.Permits(rule.Text) {
			f.Add("placement."+rule.Field, "must be permitted by kubernetes.allowed_placement, which lacks %s", rule.Text)
		}
	}
	for _, t := range place.Tolerations {
		if !slices.Contains([]string{"", "NoSchedule", "PreferNoSchedule", "NoExecute"}, t.Effect) {
			f.Add("placement.tolerations", "must have the effect NoSchedule, PreferNoSchedule or NoExecute, or none")
		}
	}
}
