package config

import (
	"encoding"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	v1 "berth/api/v1"
)

// Key is one key of a configuration, and a reference to its value.
type Key struct {
	Name  string // dotted, such as server.port
	value reflect.Value
}

// Keys yields every key of c in the order of the file.
func Keys(c *v1.Config) iter.Seq[Key] {
	return func(yield func(Key) bool) { walk(reflect.ValueOf(c).Elem(), "", yield) }
}

func walk(section reflect.Value, prefix string, yield func(Key) bool) bool {
	for i := range section.NumField() {
		name, value := prefix+fieldName(section.Type().Field(i)), section.Field(i)
		isSection := value.Kind() == reflect.Struct
		if isSection && !walk(value, name+".", yield) || !isSection && !yield(Key{name, value}) {
			return false
		}
	}
	return true
}

// fieldName returns the name of a field in the file and in the API.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Secret reports whether the value must not appear in the process's arguments.
func (k Key) Secret() bool {
	return k.value.Type() == reflect.TypeFor[v1.Secret]() || k.value.Type() == reflect.TypeFor[map[string]v1.Registry]()
}

// Value returns the value. Secrets in it hide themselves when they are printed.
func (k Key) Value() any { return k.value.Interface() }

// IsBool reports whether the value is true or false.
func (k Key) IsBool() bool { return k.value.Kind() == reflect.Bool }

// Type names the type of the value for `--help`.
func (k Key) Type() string {
	switch k.value.Interface().(type) {
	case v1.Size:
		return "size"
	case v1.Duration:
		return "duration"
	case []string:
		return "list"
	}
	return k.value.Kind().String()
}

// Text returns the value as the environment would set it, but *** for a secret.
func (k Key) Text() string {
	switch v := k.value.Interface().(type) {
	case []string:
		return strings.Join(v, ",")
	case map[string]v1.VolumeClaim:
		var list []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			text := name + "=" + v[name].Claim
			if v[name].SizeLimit != 0 {
				text += ":" + v[name].SizeLimit.String()
			}
			list = append(list, text)
		}
		return strings.Join(list, ",")
	case map[string]v1.Registry:
		if len(v) == 0 {
			return ""
		}
		return "***"
	default:
		return fmt.Sprint(v)
	}
}

// Set reads text as the key's type. Lists are separated by commas; a registry is
// host=user:password, and a claim name=claim or name=claim:size. The error never repeats the text, which may be a secret.
func (k Key) Set(text string) error { return set(k.value, text) }

func set(into reflect.Value, text string) error {
	switch v := into.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		return setText(v, text)
	case *[]string:
		*v = splitList(text)
		return nil
	case *map[string]v1.Registry:
		return setRegistries(v, text)
	case *map[string]v1.VolumeClaim:
		return setClaims(v, text)
	}
	return setScalar(into, text)
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

// splitList reads "a, b". An empty text is an empty list.
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

func setClaims(into *map[string]v1.VolumeClaim, text string) error {
	claims := map[string]v1.VolumeClaim{}
	for _, part := range splitList(text) {
		name, rest, ok := strings.Cut(part, "=")
		one, size, limited := strings.Cut(rest, ":")
		c := v1.VolumeClaim{Claim: one}
		if !ok || limited && setText(&c.SizeLimit, size) != nil {
			return errors.New("must be a list of name=claim or name=claim:size")
		}
		claims[name] = c
	}
	*into = claims
	return nil
}
