package main

import (
	"encoding"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"

	v1 "berth/api/v1"
)

// leaf is one key of the configuration, and where its value is.
type leaf struct {
	key   string // dotted
	value reflect.Value
}

// leaves yields every key of c in the order of the file.
func leaves(c *v1.Config) iter.Seq[leaf] {
	return func(yield func(leaf) bool) { walk(reflect.ValueOf(c).Elem(), "", yield) }
}

func walk(object reflect.Value, prefix string, yield func(leaf) bool) bool {
	for i := range object.NumField() {
		key, value := prefix+object.Type().Field(i).Tag.Get("yaml"), object.Field(i)
		if isSection(value) && !walk(value, key+".", yield) || !isSection(value) && !yield(leaf{key, value}) {
			return false
		}
	}
	return true
}

func isSection(v reflect.Value) bool { return v.Kind() == reflect.Struct }

// field is the field of a section that has the YAML name.
func field(section reflect.Value, name string) (reflect.Value, bool) {
	for i := range section.NumField() {
		if section.Type().Field(i).Tag.Get("yaml") == name {
			return section.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// secret says whether the key's value must not stand in the process's arguments.
func (l leaf) secret() bool {
	return l.value.Type() == reflect.TypeFor[v1.Secret]() || l.value.Kind() == reflect.Map
}

// set reads text as the key's type: lists are separated by commas, registries
// are host=user:password. Its errors never repeat the text, which may be a secret.
func (l leaf) set(text string) error {
	switch v := l.value.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		return setText(v, text)
	case *[]string:
		*v = splitList(text)
		return nil
	case *map[string]v1.Registry:
		return setRegistries(v, text)
	}
	return setScalar(l.value, text)
}

func setText(v encoding.TextUnmarshaler, text string) error {
	if v.UnmarshalText([]byte(text)) == nil {
		return nil
	}
	if _, ok := v.(*v1.Size); ok {
		return errors.New("must be a size such as 512KiB, 1MiB or 10GiB")
	}
	return errors.New("must be a duration such as 90s, 1h30m or 7d")
}

func setScalar(v reflect.Value, text string) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return errors.New("must be true or false")
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errors.New("must be a whole number")
		}
		v.SetInt(n)
	default:
		return fmt.Errorf("has a type that cannot be set: %s", v.Type())
	}
	return nil
}

// splitList reads "a, b"; an empty text is an empty list.
func splitList(text string) []string {
	list := []string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

func setRegistries(into *map[string]v1.Registry, text string) error {
	registries := map[string]v1.Registry{}
	for _, part := range splitList(text) {
		host, credentials, ok := strings.Cut(part, "=")
		user, password, both := strings.Cut(credentials, ":")
		if !ok || !both {
			return errors.New("must be a list of host=user:password")
		}
		registries[host] = v1.Registry{Username: user, Password: v1.Secret(password)}
	}
	*into = registries
	return nil
}
