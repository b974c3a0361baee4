package main

import (
	"bytes"
	"slices"

	"gopkg.in/yaml.v3"
)

// rendition returns a document of OpenAPI 3.1 as one of OpenAPI 3.0.3: a type that may be null
// becomes nullable, the examples of a schema become its example, a constant an enum, and the
// webhooks, which 3.0 lacks, an extension of the same shape.
// The differences are those of https://www.openapis.org/blog/2021/02/16/migrating-from-openapi-3-0-to-3-1-0.
func rendition(document []byte) ([]byte, error) {
	var top yaml.Node
	if err := yaml.Unmarshal(document, &top); err != nil {
		return nil, err
	}
	root := top.Content[0]
	for i := 0; i < len(root.Content); i += 2 {
		switch key, value := root.Content[i], root.Content[i+1]; key.Value {
		case "openapi":
			value.Value = "3.0.3"
		case "webhooks":
			key.Value = "x-webhooks"
		}
	}
	older(root)
	var out bytes.Buffer
	out.WriteString("# The document of OpenAPI 3.1 at /openapi.yaml, as OpenAPI 3.0.\n")
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&top); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// older changes the schemas in a node to OpenAPI 3.0.
func older(n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			if key := n.Content[i]; key.Value == "example" || key.Value == "value" {
				continue // a body, which may look like a schema
			}
			older(n.Content[i+1])
		}
		schema(n)
		return
	}
	for _, inner := range n.Content {
		older(inner)
	}
}

// schema changes a mapping if it is a schema with keywords that 3.0 writes in another way.
func schema(n *yaml.Node) {
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Value == "type" && value.Kind == yaml.SequenceNode:
			rest, null := withoutNull(value.Content)
			if len(rest) == 1 && null {
				n.Content[i+1] = rest[0]
				nullable(n)
			}
		case (key.Value == "oneOf" || key.Value == "anyOf") && value.Kind == yaml.SequenceNode:
			rest, null := withoutNull(value.Content)
			if null {
				value.Content = rest
				nullable(n)
			}
			if null && len(rest) == 1 {
				key.Value = "allOf"
			}
		case key.Value == "contentMediaType": // of a body
			key.Value, value.Value = "format", "binary"
		case key.Value == "const":
			key.Value = "enum"
			n.Content[i+1] = &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: []*yaml.Node{value}}
		case key.Value == "examples" && value.Kind == yaml.SequenceNode && len(value.Content) > 0:
			key.Value = "example"
			n.Content[i+1] = value.Content[0]
		}
	}
}

// withoutNull returns the types or schemas of a list but null, and whether null is among them.
func withoutNull(list []*yaml.Node) (rest []*yaml.Node, null bool) {
	rest = slices.DeleteFunc(slices.Clone(list), func(n *yaml.Node) bool {
		if n.Kind == yaml.MappingNode {
			_, n = find(n, "type")
		}
		return n != nil && n.Kind == yaml.ScalarNode && n.Value == "null"
	})
	return rest, len(rest) < len(list)
}

// nullable allows null. An enum of 3.0 must list it as well.
func nullable(n *yaml.Node) {
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "nullable"},
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	if _, enum := find(n, "enum"); enum != nil && !slices.ContainsFunc(enum.Content, func(v *yaml.Node) bool { return v.Tag == "!!null" }) {
		enum.Content = append(enum.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"})
	}
}
