package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
)

func FuzzContainerBody(f *testing.F) {
	f.Add([]byte(`{"internal_id":"a","image":"b","volume_id":"c","ports":[{"ip":"::","port":1,"protocol":"tcp"}],"limits":{"cpu":0.5},"stop":{"signal":"int"},"start_pattern":"(a|b"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var faults v1.FieldErrors
		var body v1.ContainerView
		edge.NewBodies(v1.Defaults).Unmarshal(raw, &body, &faults)
		spec := body.ContainerSpec
		intent.CheckContainer(&faults, intent.Policy{}, body.InternalID, &spec)
		if faults.Any() {
			return
		}
		again := spec
		intent.CheckContainer(&faults, intent.Policy{}, body.InternalID, &again)
		if faults.Any() || cmp.Diff(spec, again) != "" {
			t.Fatalf("not canonical: %v %s", faults.Err(), cmp.Diff(spec, again))
		}
	})
}
