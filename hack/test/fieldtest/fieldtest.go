package fieldtest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Paths returns the paths of all fields of a struct: those of structs in it, and of the
// elements of its slices, such as limits.memory and ports.ip. A field has its name in
// JSON, if it has one.
func Paths(t reflect.Type) (list []string) {
	for i := range t.NumField() {
		field := t.Field(i)
		inner := structOf(field.Type)
		if inner == nil {
			list = append(list, name(field))
			continue
		}
		for _, path := range Paths(inner) {
			list = append(list, name(field)+"."+path)
		}
	}
	return list
}

// structOf returns the type of a struct, or of the structs in a slice; otherwise nil.
func structOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

func name(f reflect.StructField) string {
	if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" {
		return tag
	}
	return f.Name
}

// Full returns a T in which no field is empty, and no two fields have the same number
// or text. Its slices and maps have one element. A pointer to a bool points to the value that
// is not the default of its tag; without a tag it points to false.
func Full[T any]() T {
	var v T
	n := 0
	fill(reflect.ValueOf(&v).Elem(), &n)
	return v
}

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
			if f := v.Type().Field(i); f.Type == reflect.TypeFor[*bool]() {
				v.Field(i).Elem().SetBool(f.Tag.Get("default") == "false")
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if v.Elem().Kind() != reflect.Bool {
			fill(v.Elem(), n)
		}
	case reflect.String:
		v.SetString(fmt.Sprint("text", *n))
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.Set(reflect.ValueOf(*n).Convert(v.Type()))
	}
}

// Clear empties the field of *v at a path of Paths.
func Clear(v any, path string) { visit(reflect.ValueOf(v).Elem(), path, reflect.Value.SetZero) }

// Change gives the field of *v at a path of Paths another value. v is of Full.
func Change(v any, path string) { visit(reflect.ValueOf(v).Elem(), path, change) }

func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		change(v.Index(0))
	case reflect.Pointer:
		change(v.Elem())
	case reflect.Map:
		key := v.MapKeys()[0]
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(v.MapIndex(key))
		change(value)
		v.SetMapIndex(key, value)
	default:
		v.Set(reflect.ValueOf(1).Convert(v.Type()))
	}
}

// visit calls f with the field at a path, in each element of a slice.
func visit(v reflect.Value, path string, f func(reflect.Value)) {
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			visit(v.Index(i), path, f)
		}
		return
	}
	first, rest, nested := strings.Cut(path, ".")
	for i := range v.NumField() {
		if name(v.Type().Field(i)) != first {
			continue
		}
		if nested {
			visit(v.Field(i), rest, f)
		} else {
			f(v.Field(i))
		}
	}
}

// Unused returns the paths of T at which an empty field makes no difference to use.
func Unused[T any](use func(T) any) (list []string) {
	whole := use(Full[T]())
	for _, path := range Paths(reflect.TypeFor[T]()) {
		v := Full[T]()
		Clear(&v, path)
		if reflect.DeepEqual(whole, use(v)) {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}
