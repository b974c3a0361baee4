package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"

	v1 "berth/api/v1"
)

// decodeYAML reads a configuration file over c. It is strict: an unknown or
// repeated key is a fault, and so is a value of the wrong type. Faults name the
// key and the line, never the value, which may be a secret.
func decodeYAML(r io.Reader, c *v1.Config) v1.FieldErrors {
	text, err := io.ReadAll(io.LimitReader(r, maxConfigFile+1))
	if err != nil {
		return v1.FieldErrors{{Message: err.Error()}}
	}
	if len(text) > maxConfigFile {
		return v1.FieldErrors{{Message: fmt.Sprintf("is larger than %s", v1.Size(maxConfigFile))}}
	}
	var document, another yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err = decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return v1.FieldErrors{{Message: strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	if !errors.Is(decoder.Decode(&another), io.EOF) {
		return v1.FieldErrors{{Message: "holds more than one document"}}
	}
	var w yamlWalk
	w.section(document.Content[0], reflect.ValueOf(c).Elem(), "")
	return w.faults
}

// yamlWalk collects what is wrong while it goes through a document.
type yamlWalk struct{ faults v1.FieldErrors }

func (w *yamlWalk) fault(n *yaml.Node, key, message string) {
	w.faults = append(w.faults, v1.FieldError{Key: key, Message: fmt.Sprintf("%s (line %d)", message, n.Line)})
}

// pairs calls each for the entries of a mapping. A missing value leaves what is there.
func (w *yamlWalk) pairs(n *yaml.Node, key string, each func(name string, value *yaml.Node)) {
	if n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		w.fault(n, key, "must be a mapping")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if seen[name.Value] {
			w.fault(name, join(key, name.Value), "stands here twice")
			continue
		}
		seen[name.Value] = true
		if value.Tag != "!!null" {
			each(name.Value, value)
		}
	}
}

func (w *yamlWalk) section(n *yaml.Node, into reflect.Value, key string) {
	w.pairs(n, key, func(name string, value *yaml.Node) {
		dotted := join(key, name)
		target, ok := field(into, name)
		switch {
		case !ok:
			w.fault(value, dotted, "is not a key of the configuration")
		case isSection(target):
			w.section(value, target, dotted)
		default:
			w.leaf(value, leaf{dotted, target})
		}
	})
}

func (w *yamlWalk) leaf(n *yaml.Node, l leaf) {
	switch target := l.value.Addr().Interface().(type) {
	case *[]string:
		w.list(n, l.key, target)
	case *map[string]v1.Registry:
		w.registries(n, l.key, target)
	default:
		w.scalar(n, l)
	}
}

func (w *yamlWalk) scalar(n *yaml.Node, l leaf) {
	if n.Kind != yaml.ScalarNode {
		w.fault(n, l.key, "must be a single value")
	} else if err := l.set(n.Value); err != nil {
		w.fault(n, l.key, err.Error())
	}
}

func (w *yamlWalk) list(n *yaml.Node, key string, into *[]string) {
	if n.Kind != yaml.SequenceNode {
		w.fault(n, key, "must be a list")
		return
	}
	list := make([]string, len(n.Content))
	for i, item := range n.Content {
		w.scalar(item, leaf{fmt.Sprintf("%s[%d]", key, i), reflect.ValueOf(&list[i]).Elem()})
	}
	*into = list
}

func (w *yamlWalk) registries(n *yaml.Node, key string, into *map[string]v1.Registry) {
	registries := map[string]v1.Registry{}
	w.pairs(n, key, func(host string, value *yaml.Node) {
		var r v1.Registry
		w.section(value, reflect.ValueOf(&r).Elem(), join(key, host))
		registries[host] = r
	})
	*into = registries
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
