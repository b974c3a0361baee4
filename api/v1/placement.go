package v1

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Placement bounds the machines of a cluster that a container may run on, and names classes of the cluster. An empty
// field has the value of kubernetes.default_placement.
type Placement struct {
	NodeSelector  map[string]string `json:"node_selector,omitempty"`  // labels of the machine
	Tolerations   []Toleration      `json:"tolerations,omitempty"`    // of taints of the machine
	RuntimeClass  string            `json:"runtime_class,omitempty"`  // such as that of gVisor; empty: the cluster's default
	PriorityClass string            `json:"priority_class,omitempty"` // empty: the cluster's default
}

// Toleration allows a container to run on a machine with a taint.
type Toleration struct {
	Key    string `json:"key" api:"required"`
	Value  string `json:"value,omitempty"`  // empty: any
	Effect string `json:"effect,omitempty"` // NoSchedule, PreferNoSchedule or NoExecute; empty: each
}

// The kinds of the entries of kubernetes.allowed_placement and kubernetes.default_placement.
const (
	placeSelector   = "node_selector:"
	placeToleration = "toleration:"
	placeRuntime    = "runtime_class:"
	placePriority   = "priority_class:"
	placeAny        = "*" // in place of the value
)

// placementPattern matches an entry, such as node_selector:pool=games, toleration:dedicated=* or runtime_class:gvisor.
var placementPattern = regexp.MustCompile(`^((node_selector|toleration):` + strings.Trim(annotationPattern.String(), "^$") +
	`=(\*|[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?|)|(runtime_class|priority_class):` + strings.Trim(namePattern.String(), "^$") + `)$`)

// PlacementRule is an entry of kubernetes.allowed_placement that a placement needs.
type PlacementRule struct {
	Field string // that needs it
	Text  string
}

// Rules returns the entries that p needs.
func (p Placement) Rules() (rules []PlacementRule) {
	for _, key := range slices.Sorted(maps.Keys(p.NodeSelector)) {
		rules = append(rules, PlacementRule{"node_selector", placeSelector + key + "=" + p.NodeSelector[key]})
	}
	for _, t := range p.Tolerations {
		text := placeToleration + t.Key + "=" + t.Value
		if t.Value == "" {
			text += placeAny
		}
		rules = append(rules, PlacementRule{"tolerations", text})
	}
	if p.RuntimeClass != "" {
		rules = append(rules, PlacementRule{"runtime_class", placeRuntime + p.RuntimeClass})
	}
	if p.PriorityClass != "" {
		rules = append(rules, PlacementRule{"priority_class", placePriority + p.PriorityClass})
	}
	return rules
}

// PlacementPolicy is what the operator permits: entries of the configuration.
type PlacementPolicy struct {
	Allowed []string // kubernetes.allowed_placement
	Default []string // kubernetes.default_placement
}

// Permits reports whether a placement may have what the entry text describes.
func (k PlacementPolicy) Permits(text string) bool {
	if !placementPattern.MatchString(text) {
		return false
	}
	key, _, _ := strings.Cut(text, "=")
	return slices.Contains(k.Default, text) || slices.Contains(k.Allowed, text) || slices.Contains(k.Allowed, key+"="+placeAny)
}

// Place returns p, whose empty fields have the values of k.Default, and with nil for what is empty.
func (k PlacementPolicy) Place(p Placement) Placement {
	if len(p.NodeSelector) == 0 {
		p.NodeSelector = nil
		for _, rest := range k.defaults(placeSelector) {
			key, value, _ := strings.Cut(rest, "=")
			if p.NodeSelector == nil {
				p.NodeSelector = map[string]string{}
			}
			p.NodeSelector[key] = value
		}
	}
	if len(p.Tolerations) == 0 {
		p.Tolerations = nil
		for _, rest := range k.defaults(placeToleration) {
			key, value, _ := strings.Cut(rest, "=")
			p.Tolerations = append(p.Tolerations, Toleration{Key: key, Value: strings.TrimSuffix(value, placeAny)})
		}
	}
	for kind, class := range map[string]*string{placeRuntime: &p.RuntimeClass, placePriority: &p.PriorityClass} {
		if list := k.defaults(kind); *class == "" && len(list) > 0 {
			*class = list[0]
		}
	}
	return p
}

// defaults returns the entries of a kind, without it.
func (k PlacementPolicy) defaults(kind string) (list []string) {
	for _, text := range k.Default {
		if rest, found := strings.CutPrefix(text, kind); found {
			list = append(list, rest)
		}
	}
	return list
}

// validatePlacement checks the entries of k. The system and the architecture of a machine are those of berth-keeper.
func (k KubernetesConfig) validatePlacement(f *FieldErrors) {
	const allowed, initial = "kubernetes.allowed_placement", "kubernetes.default_placement"
	for key, list := range map[string][]string{allowed: k.AllowedPlacement, initial: k.DefaultPlacement} {
		for i, text := range list {
			at := fmt.Sprintf("%s[%d]", key, i)
			f.check(placementPattern.MatchString(text), at,
				"must be node_selector:key=value, toleration:key=value, runtime_class:name or priority_class:name; * is any value")
			machine := strings.HasPrefix(text, placeSelector+"kubernetes.io/os=") ||
				strings.HasPrefix(text, placeSelector+"kubernetes.io/arch=")
			f.check(!machine, at, "must not be about kubernetes.io/os or kubernetes.io/arch, which berth sets")
			whole := !strings.HasPrefix(text, placeSelector) || !strings.HasSuffix(text, "="+placeAny)
			f.check(key == allowed || whole, at, "must have a value")
		}
	}
}
