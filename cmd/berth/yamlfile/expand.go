package yamlfile

import (
	"fmt"

	"gopkg.in/yaml.v3"
)

// maxNodes bounds the nodes of a document whose aliases are expanded.
const maxNodes = 100_000

// expand returns the document below root with a copy of its anchor in the place of
// each alias, and with the entries of merge keys (<<) in their mappings.
func expand(root *yaml.Node) (*yaml.Node, error) {
	e := expansion{open: map[*yaml.Node]bool{}}
	return e.node(root)
}

type expansion struct {
	nodes int                 // so far
	open  map[*yaml.Node]bool // the anchors that are being expanded
}

func (e *expansion) node(n *yaml.Node) (*yaml.Node, error) {
	if e.nodes++; e.nodes > maxNodes {
		return nil, fmt.Errorf("its aliases expand to more than %d values", maxNodes)
	}
	if n.Kind == yaml.AliasNode {
		if e.open[n.Alias] {
			return nil, fmt.Errorf("the anchor %q contains itself (line %d)", n.Value, n.Line)
		}
		return e.node(n.Alias)
	}
	e.open[n] = true
	defer delete(e.open, n)
	out := *n
	out.Content = make([]*yaml.Node, len(n.Content))
	for i := range n.Content {
		child, err := e.node(n.Content[i])
		if err != nil {
			return nil, err
		}
		out.Content[i] = child
	}
	if n.Kind == yaml.MappingNode {
		merge(&out)
	}
	return &out, nil
}

// merge puts the entries of the merge keys of a mapping behind its own, unless it
// or an earlier merge key has them.
func merge(mapping *yaml.Node) {
	own, merged := []*yaml.Node{}, []*yaml.Node{}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		name, value := mapping.Content[i], mapping.Content[i+1]
		switch {
		case name.Tag != "!!merge":
			own = append(own, name, value)
		case value.Kind == yaml.SequenceNode:
			for _, each := range value.Content {
				merged = append(merged, each.Content...)
			}
		default:
			merged = append(merged, value.Content...)
		}
	}
	has := map[string]bool{}
	for i := 0; i < len(own); i += 2 {
		has[own[i].Value] = true
	}
	for i := 0; i+1 < len(merged); i += 2 {
		if name := merged[i].Value; !has[name] {
			has[name] = true
			own = append(own, merged[i], merged[i+1])
		}
	}
	mapping.Content = own
}
