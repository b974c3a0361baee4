package yamlfile

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"

	v1 "berth/api/v1"
)

// Decoder decodes YAML documents into structs.
type Decoder struct {
	// Unknown is the message for a key that the struct does not have.
	Unknown string
	// Set sets a value from a scalar. Its errors must not repeat the scalar.
	Set func(into reflect.Value, scalar Scalar) error
	// Aliases allows aliases and merge keys.
	Aliases bool
}

// Scalar is a single value of a document.
type Scalar struct{ node *yaml.Node }

// Text returns the value as it is written in the file, without quotes.
func (s Scalar) Text() string { return s.node.Value }

// IsNumber reports whether the value is an unquoted number.
func (s Scalar) IsNumber() bool { return s.node.Tag == "!!int" || s.node.Tag == "!!float" }

// IsBool reports whether the value is an unquoted true or false.
func (s Scalar) IsBool() bool { return s.node.Tag == "!!bool" }

// Decode sets the number or bool that into points to.
func (s Scalar) Decode(into any) error { return s.node.Decode(into) }

// Document is one document of a file.
type Document struct {
	Number int // in the file, from 1; empty documents count
	root   *yaml.Node
}

// Documents returns the documents of a file that are not empty.
func Documents(text []byte) (list []Document, faults v1.FieldErrors) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for number := 1; ; number++ {
		var document yaml.Node
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, v1.FieldErrors{{Message: strings.TrimPrefix(err.Error(), "yaml: ")}}
		case !isNull(document.Content[0]):
			list = append(list, Document{number, document.Content[0]})
		}
	}
}

// Decode reads the only document of text over the struct that into points to. Keys
// are the names of the fields in JSON. An absent or empty value leaves the field as
// it is.
func (d Decoder) Decode(text []byte, into any) v1.FieldErrors {
	list, faults := Documents(text)
	switch {
	case faults != nil || len(list) == 0:
		return faults
	case len(list) > 1:
		return v1.FieldErrors{{Message: "contains more than one document"}}
	}
	return d.DecodeDocument(list[0], into)
}

// DecodeDocument is Decode for one document of a file.
func (d Decoder) DecodeDocument(document Document, into any) v1.FieldErrors {
	root := document.root
	if d.Aliases {
		var err error
		if root, err = expand(root); err != nil {
			return v1.FieldErrors{{Message: err.Error()}}
		}
	}
	w := walk{Decoder: d}
	w.object(root, reflect.ValueOf(into).Elem(), "")
	return w.errors
}

// walk collects the errors of one document.
type walk struct {
	Decoder
	errors v1.FieldErrors
}

func (w *walk) fail(n *yaml.Node, key, message string) {
	w.errors = append(w.errors, v1.FieldError{Key: key, Message: fmt.Sprintf("%s (line %d)", message, n.Line)})
}

// pairs calls each for the entries of a mapping that have a value.
func (w *walk) pairs(n *yaml.Node, key string, each func(name string, value *yaml.Node)) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		w.fail(n, key, "must be a mapping")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if seen[name.Value] {
			w.fail(name, join(key, name.Value), "is set twice")
			continue
		}
		seen[name.Value] = true
		if !isNull(value) {
			each(name.Value, value)
		}
	}
}

func (w *walk) object(n *yaml.Node, into reflect.Value, key string) {
	w.pairs(n, key, func(name string, value *yaml.Node) {
		target, ok := field(into, name)
		if !ok {
			w.fail(value, join(key, name), w.Unknown)
			return
		}
		w.value(value, target, join(key, name))
	})
}

func (w *walk) value(n *yaml.Node, into reflect.Value, key string) {
	switch {
	case into.Kind() == reflect.Pointer:
		target := reflect.New(into.Type().Elem())
		w.value(n, target.Elem(), key)
		into.Set(target)
	case IsObject(into):
		w.object(n, into, key)
	case into.Kind() == reflect.Slice:
		w.list(n, into, key)
	case into.Kind() == reflect.Map:
		w.mapping(n, into, key)
	case n.Kind != yaml.ScalarNode:
		w.fail(n, key, "must be a single value")
	default:
		if err := w.Set(into, Scalar{n}); err != nil {
			w.fail(n, key, err.Error())
		}
	}
}

func (w *walk) list(n *yaml.Node, into reflect.Value, key string) {
	if n.Kind != yaml.SequenceNode {
		w.fail(n, key, "must be a list")
		return
	}
	list := reflect.MakeSlice(into.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		w.value(item, list.Index(i), fmt.Sprintf("%s[%d]", key, i))
	}
	into.Set(list)
}

func (w *walk) mapping(n *yaml.Node, into reflect.Value, key string) {
	entries := reflect.MakeMap(into.Type())
	w.pairs(n, key, func(name string, value *yaml.Node) {
		entry := reflect.New(into.Type().Elem()).Elem()
		w.value(value, entry, join(key, name))
		entries.SetMapIndex(reflect.ValueOf(name), entry)
	})
	into.Set(entries)
}

// IsObject reports whether a value is a struct with keys of its own, and not one
// that is written as a text, such as a time.
func IsObject(v reflect.Value) bool {
	return v.Kind() == reflect.Struct && !reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// Name returns the key of a struct's field.
func Name(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// field returns the field of a struct with this key, also of an embedded struct.
func field(object reflect.Value, name string) (reflect.Value, bool) {
	for _, f := range reflect.VisibleFields(object.Type()) {
		if !f.Anonymous && Name(f) == name {
			return object.FieldByIndex(f.Index), true
		}
	}
	return reflect.Value{}, false
}

func isNull(n *yaml.Node) bool { return n.Tag == "!!null" }

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
