package config

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	v1 "berth/api/v1"
)

// decode reads a configuration file over c. Its errors never repeat a value, which may be a
// misplaced secret.
func decode(file io.Reader, c *v1.Config) v1.FieldErrors {
	text, err := io.ReadAll(file)
	if err != nil {
		return v1.FieldErrors{{Message: err.Error()}}
	}
	documents := Documents(text)
	if len(documents) > 1 {
		return v1.FieldErrors{{Message: "contains more than one document"}}
	}
	var root any
	for _, d := range documents {
		if err := yaml.UnmarshalStrict(d.Text, &root, withNumbers); err != nil {
			return v1.FieldErrors{{Message: YAMLError(err)}}
		}
	}
	return assign(reflect.ValueOf(c).Elem(), "", root)
}

// withNumbers keeps numbers as they are written in JSON.
func withNumbers(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}

// assign sets a value and what is in it. An empty value changes nothing.
func assign(into reflect.Value, key string, given any) (faults v1.FieldErrors) {
	fail := func(message string) v1.FieldErrors { return v1.FieldErrors{{Key: key, Message: message}} }
	if given == nil {
		return nil
	}
	switch into.Kind() {
	case reflect.Struct, reflect.Map:
		entries, ok := given.(map[string]any)
		if !ok {
			return fail("must be a mapping")
		}
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			faults = append(faults, assignEntry(into, key, name, entries[name])...)
		}
	case reflect.Slice:
		given, ok := given.([]any)
		if !ok {
			return fail("must be a list")
		}
		list := reflect.MakeSlice(into.Type(), len(given), len(given))
		for i, item := range given {
			faults = append(faults, assign(list.Index(i), fmt.Sprintf("%s[%d]", key, i), item)...)
		}
		into.Set(list)
	default:
		text, isText := given.(string)
		switch given.(type) {
		case map[string]any, []any:
			return fail("must be a single value")
		case json.Number, bool:
			text = fmt.Sprint(given)
		}
		if into.Kind() == reflect.String && !isText {
			return fail("must be a text: put it in quotes") // 0123 is 83 by now
		}
		if err := set(into, text); err != nil {
			return fail(err.Error())
		}
	}
	return faults
}

// assignEntry sets the entry of a section or a map.
func assignEntry(into reflect.Value, key, name string, given any) (faults v1.FieldErrors) {
	path := strings.TrimPrefix(key+"."+name, ".")
	if into.Kind() == reflect.Map {
		entry := reflect.New(into.Type().Elem()).Elem()
		faults = assign(entry, path, given)
		if into.IsNil() {
			into.Set(reflect.MakeMap(into.Type()))
		}
		into.SetMapIndex(reflect.ValueOf(name), entry)
		return faults
	}
	for i := range into.NumField() {
		if fieldName(into.Type().Field(i)) == name {
			return assign(into.Field(i), path, given)
		}
	}
	return v1.FieldErrors{{Key: path, Message: "is not a key of the configuration"}}
}

// Document is one document of a file in YAML.
type Document struct {
	Number int // in the file, from 1; empty documents count
	Text   []byte
}

// marker is the line that begins a document, or ends one.
var marker = regexp.MustCompile(`(?m)^(?:---|\.\.\.)(?:[ \t\r]|$)`)

// Documents returns the documents of a file that are not empty.
func Documents(text []byte) (list []Document) {
	number := 0
	for i, part := range marker.Split(string(text), -1) {
		if i == 0 && isComment(part) {
			continue // it precedes the marker of the first document
		}
		if number++; !isComment(part) {
			list = append(list, Document{number, []byte(part)})
		}
	}
	return list
}

// isComment reports whether a text has nothing but comments.
func isComment(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}

// YAMLError returns the text for an error of a text that is not YAML. It repeats no value.
func YAMLError(err error) string {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	switch {
	case strings.Contains(text, "map key"):
		return "has a key that is not a text"
	case strings.Contains(text, "`"): // a value with a tag of another type
		return "has a value that is not of the type of its tag"
	}
	return strings.Join(strings.Fields(strings.TrimPrefix(text, "unmarshal errors:")), " ")
}
