package configfile

import (
	"strconv"

	"gopkg.in/yaml.v3"
)

// sameBeside reports whether two documents are equal except for the values of t.
func sameBeside(a, b *yaml.Node, t *tree) bool {
	if t != nil && t.value != nil {
		return b != nil && b.Kind == yaml.ScalarNode && b.Value == *t.value
	}
	if a == nil || b == nil || a.Kind != b.Kind {
		return t != nil && (a == nil || a.Kind == yaml.ScalarNode) && b != nil
	}
	if a.Value != b.Value || a.ShortTag() != b.ShortTag() || a.Anchor != b.Anchor || len(a.Content) > len(b.Content) {
		return false
	}
	if t == nil && len(a.Content) != len(b.Content) {
		return false
	}
	for i, child := range a.Content {
		var c *tree
		switch {
		case t != nil && a.Kind == yaml.SequenceNode:
			c = t.find(strconv.Itoa(i))
		case t != nil && a.Kind == yaml.MappingNode && i%2 == 1:
			c = t.find(a.Content[i-1].Value)
		}
		if c != nil && a.Kind == yaml.MappingNode && repeated(a, i) {
			c = nil
		}
		if !sameBeside(child, b.Content[i], c) {
			return false
		}
	}
	return true
}

// repeated reports whether the key of a mapping's value occurs again behind it.
func repeated(n *yaml.Node, i int) bool {
	for k := i + 1; k < len(n.Content); k += 2 {
		if n.Content[k].Value == n.Content[i-1].Value {
			return true
		}
	}
	return false
}
