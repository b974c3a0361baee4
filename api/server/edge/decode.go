package edge

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	v1 "berth/api/v1"
)

// Ignored is the type of a field that is accepted and not decoded.
type Ignored struct{}

// unmarshal decodes a JSON object into the struct that out points to, and adds
// every error to f. A field is optional unless its tag is wire:"required"; null
// counts as absent. A field that is set twice is an error. An empty body is an empty
// object. It returns false if raw is not a JSON object.
//
// It allocates only what out needs: unknown and ignored fields are skipped.
func unmarshal(raw []byte, out any, f *v1.FieldErrors) bool {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}")
	}
	if err := checkJSON(raw); err != nil {
		f.Add("body", "%s", err)
		return false
	}
	value := trimJSON(raw)
	if value[0] != '{' {
		f.Add("body", "must be an object")
		return false
	}
	fillStruct(reflect.ValueOf(out).Elem(), value, "", f)
	return true
}

func fillStruct(v reflect.Value, object []byte, path string, f *v1.FieldErrors) {
	sent := make([][]byte, v.NumField()) // by field
	index := make(map[string]int, v.NumField())
	for i := range v.NumField() {
		index[jsonName(v.Type().Field(i))] = i
	}
	var unknown map[string]bool
	for name, value := range members(object) {
		if i, known := index[name]; known {
			if sent[i] != nil {
				f.Add(join(path, name), "is set twice")
			}
			sent[i] = value
			continue
		}
		if unknown == nil {
			unknown = map[string]bool{}
		}
		unknown[name] = true
	}
	for i, value := range sent {
		field := v.Type().Field(i)
		switch {
		case value != nil && !isNull(value):
			fill(v.Field(i), value, join(path, jsonName(field)), f)
		case field.Tag.Get("wire") == "required":
			f.Add(join(path, jsonName(field)), "is required")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		f.Add(join(path, clip(name)), "unknown field")
	}
}

// jsonName returns the JSON name of a struct field.
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

// clip shortens a client's text for an error message.
func clip(name string) string {
	const most = 64
	if len(name) > most {
		return name[:most] + "..."
	}
	return name
}

var (
	ignoredType  = reflect.TypeFor[Ignored]()
	durationType = reflect.TypeFor[v1.Duration]()
)

func fill(v reflect.Value, value []byte, path string, f *v1.FieldErrors) {
	switch v.Type() {
	case ignoredType:
		return
	case durationType:
		if v.Addr().Interface().(*v1.Duration).UnmarshalJSON(value) != nil {
			f.Add(path, "must be a duration such as 90s, 1h30m or 7d")
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), value, path, f)
	case reflect.Struct:
		if value[0] == '{' {
			fillStruct(v, value, path, f)
		} else {
			f.Add(path, "must be an object")
		}
	case reflect.Slice:
		fillSlice(v, value, path, f)
	case reflect.Map:
		fillMap(v, value, path, f)
	default:
		fillScalar(v, value, path, f)
	}
}

func fillSlice(v reflect.Value, value []byte, path string, f *v1.FieldErrors) {
	if value[0] != '[' {
		f.Add(path, "must be an array")
		return
	}
	n := 0
	for range elements(value) {
		n++
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	i := 0
	for element := range elements(value) {
		fill(v.Index(i), element, fmt.Sprintf("%s[%d]", path, i), f)
		i++
	}
}

// fillMap decodes an object into a map with string keys.
func fillMap(v reflect.Value, value []byte, path string, f *v1.FieldErrors) {
	if value[0] != '{' {
		f.Add(path, "must be an object")
		return
	}
	fields := map[string][]byte{}
	for name, element := range members(value) {
		if _, twice := fields[name]; twice {
			f.Add(join(path, clip(name)), "is set twice")
		}
		fields[name] = element
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element, fields[name], join(path, clip(name)), f)
		v.SetMapIndex(reflect.ValueOf(name), element)
	}
}

func fillScalar(v reflect.Value, value []byte, path string, f *v1.FieldErrors) {
	number := ""
	if value[0] == '-' || '0' <= value[0] && value[0] <= '9' {
		number = string(value)
	}
	switch v.Kind() {
	case reflect.String:
		if value[0] != '"' {
			f.Add(path, "must be a string")
			return
		}
		v.SetString(unquote(value))
	case reflect.Bool:
		if value[0] != 't' && value[0] != 'f' {
			f.Add(path, "must be true or false")
		}
		v.SetBool(value[0] == 't')
	case reflect.Float64:
		n, err := strconv.ParseFloat(number, 64)
		if err != nil {
			f.Add(path, "must be a number")
		}
		v.SetFloat(n)
	case reflect.Uint16:
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			f.Add(path, "must be an integer between 0 and 65535")
		}
		v.SetUint(n)
	default:
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			f.Add(path, "must be an integer")
		}
		v.SetInt(n)
	}
}
