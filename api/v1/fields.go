package v1

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Field is a field of a struct that clients send or receive. Its tags are:
//
//	json:"name"         its name
//	api:"required"      a request must have it
//	api:"readonly"      accepted and ignored in a request
//	api:"writeonly"     never answered
//	api:"-"             for the store alone: unknown to clients
//	default:"value"     what an empty field means, see WithDefaults
//	recreate:"named"    another value needs another container, see ContainerSpec.SpecHash
//
// An embedded struct has the access of its tag in all fields.
type Field struct {
	reflect.StructField        // its Index begins at the struct that was asked for
	Name                string // in JSON
	Access              string // the tag api
}

// Fields returns the fields of a struct, those of embedded structs among them.
func Fields(t reflect.Type) (list []Field) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		access := f.Tag.Get("api")
		switch {
		case f.Anonymous && name == "":
			for _, inner := range Fields(f.Type) {
				inner.Index = append([]int{i}, inner.Index...)
				if access != "" {
					inner.Access = access
				}
				list = append(list, inner)
			}
		case f.IsExported() && name != "-":
			list = append(list, Field{f, name, access})
		}
	}
	return list
}

// WithDefaults returns a struct whose empty fields have the values of their tags default.
func WithDefaults[T any](v T) T {
	setDefaults(reflect.ValueOf(&v).Elem())
	return v
}

func setDefaults(v reflect.Value) {
	for i := range v.NumField() {
		field := v.Field(i)
		text, has := v.Type().Field(i).Tag.Lookup("default")
		switch {
		case has && field.IsZero():
			setText(field, text)
		case field.Kind() == reflect.Struct && field.Type() != reflect.TypeFor[time.Time]():
			setDefaults(field)
		}
	}
}

// setText sets a field to the value of a tag.
func setText(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setText(v.Elem(), text)
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(text == "true")
	default:
		n, _ := strconv.ParseInt(text, 10, 64) // TestDefaultsAreValid
		v.SetInt(n)
	}
}

// Shown returns a struct without the fields that clients do not receive.
func Shown[T any](v T) T {
	for _, f := range Fields(reflect.TypeFor[T]()) {
		if f.Access == "-" || f.Access == "writeonly" {
			reflect.ValueOf(&v).Elem().FieldByIndex(f.Index).SetZero()
		}
	}
	return v
}

// marshalWhole returns the JSON of an answer: each field that clients receive, even if it is
// empty. A list or map that is nil is empty.
func marshalWhole(v any) ([]byte, error) {
	s := reflect.ValueOf(v)
	out := []byte{'{'}
	for _, f := range Fields(s.Type()) {
		if f.Access == "-" || f.Access == "writeonly" {
			continue
		}
		field := s.FieldByIndex(f.Index)
		switch {
		case field.Kind() == reflect.Slice && field.IsNil():
			field = reflect.MakeSlice(field.Type(), 0, 0)
		case field.Kind() == reflect.Map && field.IsNil():
			field = reflect.MakeMap(field.Type())
		}
		text, err := json.Marshal(field.Interface())
		if err != nil {
			return nil, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(strconv.AppendQuote(out, f.Name), ':'), text...)
	}
	return append(out, '}'), nil
}

// NullString is a text that is null in JSON if it is empty.
type NullString string

// MarshalJSON writes the text, or null.
func (s NullString) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}
