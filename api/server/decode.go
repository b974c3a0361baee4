package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"berth/api/intent"
	v1 "berth/api/v1"
)

// ignored is the type of a field that may be sent, and is not read.
type ignored struct{}

// unmarshal reads a JSON object into the struct that out points to, and notes
// in f everything that is wrong with it. A field is optional unless its tag is
// wire:"required"; null is absent. No body at all is an empty object. It returns
// false if there is no object to read.
func unmarshal(raw []byte, out any, f *intent.Faults) bool {
	var tree any = map[string]any{}
	if len(bytes.TrimSpace(raw)) > 0 {
		var err error
		if tree, err = parse(raw); err != nil {
			f.Add("body", "%s", err)
			return false
		}
	}
	fields, isObject := tree.(map[string]any)
	if !isObject {
		f.Add("body", "must be an object")
		return false
	}
	fillStruct(reflect.ValueOf(out).Elem(), fields, "", f)
	return true
}

// parse reads one JSON value and nothing after it.
func parse(raw []byte) (any, error) {
	if !utf8.Valid(raw) {
		return nil, errors.New("must be UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, errors.New("is not JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("has data after the JSON value")
	}
	return tree, nil
}

func fillStruct(v reflect.Value, fields map[string]any, path string, f *intent.Faults) {
	known := map[string]bool{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name := jsonName(field)
		known[name] = true
		data, sent := fields[name]
		switch {
		case sent && data != nil:
			fill(v.Field(i), data, join(path, name), f)
		case field.Tag.Get("wire") == "required":
			f.Add(join(path, name), "is required")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !known[name] {
			f.Add(join(path, clip(name)), "unknown field")
		}
	}
}

// jsonName is the name of a struct's field on the wire.
func jsonName(field reflect.StructField) string {
	tag := field.Tag.Get("json")
	for i := range len(tag) {
		if tag[i] == ',' {
			return tag[:i]
		}
	}
	return tag
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// clip bounds how much of a client's own text a message repeats.
func clip(name string) string {
	const most = 64
	if len(name) > most {
		return name[:most] + "..."
	}
	return name
}

var (
	ignoredType  = reflect.TypeFor[ignored]()
	durationType = reflect.TypeFor[v1.Duration]()
)

func fill(v reflect.Value, data any, path string, f *intent.Faults) {
	switch v.Type() {
	case ignoredType:
		return
	case durationType:
		fillDuration(v, data, path, f)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), data, path, f)
	case reflect.Struct:
		if fields, isObject := data.(map[string]any); isObject {
			fillStruct(v, fields, path, f)
		} else {
			f.Add(path, "must be an object")
		}
	case reflect.Slice:
		fillSlice(v, data, path, f)
	case reflect.Map:
		fillMap(v, data, path, f)
	default:
		fillScalar(v, data, path, f)
	}
}

func fillDuration(v reflect.Value, data any, path string, f *intent.Faults) {
	text, err := json.Marshal(data)
	if err == nil {
		err = v.Addr().Interface().(*v1.Duration).UnmarshalJSON(text)
	}
	if err != nil {
		f.Add(path, "must be a duration such as 90s, 1h30m or 7d")
	}
}

func fillSlice(v reflect.Value, data any, path string, f *intent.Faults) {
	list, isArray := data.([]any)
	if !isArray {
		f.Add(path, "must be an array")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	for i, element := range list {
		fill(v.Index(i), element, fmt.Sprintf("%s[%d]", path, i), f)
	}
}

// fillMap reads a map from string to string.
func fillMap(v reflect.Value, data any, path string, f *intent.Faults) {
	fields, isObject := data.(map[string]any)
	if !isObject {
		f.Add(path, "must be an object")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, fields[name], join(path, clip(name)), f)
		v.SetMapIndex(reflect.ValueOf(name), value)
	}
}

func fillScalar(v reflect.Value, data any, path string, f *intent.Faults) {
	number, _ := data.(json.Number)
	switch v.Kind() {
	case reflect.String:
		if text, isString := data.(string); isString {
			v.SetString(text)
			return
		}
		f.Add(path, "must be a string")
	case reflect.Bool:
		if b, isBool := data.(bool); isBool {
			v.SetBool(b)
			return
		}
		f.Add(path, "must be true or false")
	case reflect.Float64:
		n, err := strconv.ParseFloat(string(number), 64)
		if err != nil {
			f.Add(path, "must be a number")
		}
		v.SetFloat(n)
	case reflect.Uint16:
		n, err := strconv.ParseUint(string(number), 10, 16)
		if err != nil {
			f.Add(path, "must be an integer between 0 and 65535")
		}
		v.SetUint(n)
	default:
		n, err := strconv.ParseInt(string(number), 10, 64)
		if err != nil {
			f.Add(path, "must be an integer")
		}
		v.SetInt(n)
	}
}
