package v1

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlacement: an operator's entries permit what they say and no more, and complete what a request leaves out.
func TestPlacement(t *testing.T) {
	k := PlacementPolicy{
		Allowed: []string{"node_selector:example.com/pool=games", "node_selector:zone=*", "toleration:dedicated=games", "toleration:spot=*", "runtime_class:gvisor"},
		Default: []string{"node_selector:pool=small", "toleration:dedicated=*", "priority_class:free"},
	}
	for text, want := range map[string]bool{
		"node_selector:example.com/pool=games": true, "node_selector:example.com/pool=big": false, "node_selector:zone=a": true,
		"node_selector:zone=": true, "node_selector:zone=x=y": false, "node_selector:zone=a b": false, "node_selector:pool=small": true,
		"toleration:dedicated=games": true, "toleration:dedicated=x": false, "toleration:dedicated=*": true, "toleration:spot=*": true, "toleration:spot=1": true,
		"toleration:other=*": false, "runtime_class:gvisor": true, "runtime_class:kata": false, "runtime_class:*": false,
		"priority_class:free": true, "priority_class:paid": false, "": false,
	} {
		require.Equal(t, want, k.Permits(text), text)
	}
	whole := k.Place(Placement{Tolerations: []Toleration{}})
	require.Equal(t, Placement{NodeSelector: map[string]string{"pool": "small"}, Tolerations: []Toleration{{Key: "dedicated"}}, PriorityClass: "free"}, whole)
	for _, rule := range whole.Rules() {
		require.True(t, k.Permits(rule.Text), rule.Text)
	}
	own := Placement{NodeSelector: map[string]string{"zone": "a"}, Tolerations: []Toleration{{"spot", "1", "NoExecute"}}, RuntimeClass: "gvisor", PriorityClass: "free"}
	require.Equal(t, own, k.Place(own))
	require.Equal(t, Placement{}, PlacementPolicy{}.Place(Placement{NodeSelector: map[string]string{}, Tolerations: []Toleration{}}))
}

// TestPlacementIsPartOfTheHashes: another placement needs another container of both roles, and none keeps those of
// an older berth.
func TestPlacementIsPartOfTheHashes(t *testing.T) {
	var s ContainerSpec
	server, install := s.SpecHash(), s.InstallHash()
	s.Placement = Placement{NodeSelector: map[string]string{}, Tolerations: []Toleration{}}
	require.Equal(t, install, PlacementPolicy{}.placed(s).InstallHash())
	require.Equal(t, server, PlacementPolicy{}.placed(s).SpecHash())
	s.Placement = Placement{RuntimeClass: "gvisor"}
	require.NotEqual(t, server, s.SpecHash())
	require.NotEqual(t, install, s.InstallHash())
}

// placed returns s with its placement completed.
func (k PlacementPolicy) placed(s ContainerSpec) ContainerSpec {
	s.Placement = k.Place(s.Placement)
	return s
}
