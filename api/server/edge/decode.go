package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	v1 "berth/api/v1"
)

// Limits on a JSON body.
const (
	maxValues = 200_000 // values, with field names; more than 1 MiB of port bindings have
	maxDepth  = 64      // of nested objects and arrays
)

// unmarshal decodes a JSON object into the struct that out points to, and adds
// every error to f. The tags of its fields are those of v1.Field; null
// counts as absent. A field that is set twice is an error. An empty body is an empty
// object. It returns false if raw is not a JSON object.
//
// It allocates only what out needs: unknown and ignored fields are skipped, and so are the elements
// of lists once f is full.
func unmarshal(raw []byte, out any, f *v1.FieldErrors) bool {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	if fault := checkJSON(raw); fault != "" {
		f.Add("body", "%s", fault)
		return false
	}
	v := reflect.ValueOf(out).Elem()
	filler{tokens(raw), f, map[reflect.Type]shape{}}.fillStruct(v, "")
	fields := v1.Fields(v.Type())
	slices.SortStableFunc(*f, func(a, b v1.FieldError) int { return position(fields, a) - position(fields, b) })
	return true
}

// position returns the index of the field of a struct that an error is about. That of an unknown
// field is the last one.
func position(of []v1.Field, fault v1.FieldError) int {
	name := fault.Key
	if i := strings.IndexAny(name, ".["); i >= 0 {
		name = name[:i]
	}
	if i := slices.IndexFunc(of, func(f v1.Field) bool { return f.Name == name }); i >= 0 {
		return i
	}
	return len(of)
}

// tokens returns a reader of JSON like that of encoding/json. The names of fields are
// compared by filler, so that the error names the field.
func tokens(raw []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// checkJSON returns what is wrong with a body as a whole, or an empty string. What follows
// assumes that it is one JSON object.
func checkJSON(raw []byte) string {
	if !utf8.Valid(raw) {
		return "must be UTF-8"
	}
	if fault := checkSize(raw); fault != "" {
		return fault
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	var first json.RawMessage
	var syntax *json.SyntaxError
	err := in.Decode(&first)
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("is not JSON: %s, at byte %d", syntax, syntax.Offset)
	case err != nil:
		return fmt.Sprintf("is not JSON: it ends too early, after %d bytes", len(raw))
	case in.InputOffset() < int64(len(raw)):
		return "has data after the JSON value"
	case first[0] != '{':
		return "must be an object"
	}
	return ""
}

// checkSize returns which limit a body exceeds, or an empty string.
func checkSize(raw []byte) string {
	for in, values := tokens(raw), 0; ; {
		token, err := in.ReadToken()
		if err != nil { // the end, or an error that checkJSON finds too
			return ""
		}
		inside, n := in.StackIndex(in.StackDepth())
		if isName := inside == '{' && n%2 == 1; !isName && token.Kind() != '}' && token.Kind() != ']' {
			values++
		}
		switch {
		case in.StackDepth() > maxDepth:
			return fmt.Sprintf("must be nested at most %d deep", maxDepth)
		case values > maxValues:
			return fmt.Sprintf("must hold at most %d values", maxValues)
		}
	}
}

// filler fills variables with the values that it reads, and adds every error to fieldErrors. The
// JSON is valid, so reading it cannot fail.
type filler struct {
	in          *jsontext.Decoder
	fieldErrors *v1.FieldErrors
	shapes      map[reflect.Type]shape // of the structs so far: a list may have many of one type
}

// shape is what a request may set in a struct.
type shape struct {
	fields []v1.Field
	index  map[string]int // of fields, by name
}

// next returns the next value as it was sent.
func (x filler) next() []byte {
	value, _ := x.in.ReadValue()
	return value
}

// begin reads the begin of an object or array, or returns false for another value.
func (x filler) begin(kind jsontext.Kind, path, want string) bool {
	if x.in.PeekKind() != kind {
		x.fieldErrors.Add(path, "must be %s", want)
		x.next()
		return false
	}
	_, _ = x.in.ReadToken()
	return true
}

// end reads the end of an object or array if nothing else follows in it.
func (x filler) end(kind jsontext.Kind) bool {
	if x.in.PeekKind() != kind {
		return false
	}
	_, _ = x.in.ReadToken()
	return true
}

// name reads the name of a member.
func (x filler) name() string {
	token, _ := x.in.ReadToken()
	return token.String()
}

func (x filler) fillStruct(v reflect.Value, path string) {
	if !x.begin('{', path, "an object") {
		return
	}
	known, cached := x.shapes[v.Type()]
	if !cached {
		known = shapeOf(v)
		x.shapes[v.Type()] = known
	}
	fields := known.fields
	seen, set := make([]bool, len(fields)), make([]bool, len(fields))
	var unknown []string
	for !x.end('}') {
		name := x.name()
		i, found := known.index[name]
		if !found {
			if x.next(); len(unknown) < maxUnknown {
				unknown = append(unknown, name)
			}
			continue
		}
		if seen[i] {
			x.fieldErrors.Add(join(path, name), "is set twice")
		}
		seen[i] = true
		if set[i] = x.in.PeekKind() != 'n' && fields[i].Access != "readonly"; set[i] {
			x.fill(v.FieldByIndex(fields[i].Index), join(path, name))
		} else {
			x.next()
		}
	}
	for i, set := range set {
		if f := fields[i]; !set && f.Access == "required" {
			x.fieldErrors.Add(join(path, f.Name), "is required")
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		x.fieldErrors.Add(join(path, Clip(name)), "unknown field")
	}
}

// maxUnknown is how many unknown fields of an object are named.
const maxUnknown = 100

// shapeOf returns the fields of a struct that a request may set, and those that it may send back
// as it received them.
func shapeOf(v reflect.Value) shape {
	s := shape{index: map[string]int{}}
	for _, f := range v1.Fields(v.Type()) {
		if f.Access != "-" {
			s.fields = append(s.fields, f)
		}
	}
	if more, has := v.Interface().(interface{ IgnoredFields() []string }); has {
		for _, name := range more.IgnoredFields() {
			s.fields = append(s.fields, v1.Field{Name: name, Access: "readonly"})
		}
	}
	for i, f := range s.fields {
		s.index[f.Name] = i
	}
	return s
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Clip shortens a client's text for an error message.
func Clip(name string) string {
	const most = 64
	if len(name) > most {
		return strings.ToValidUTF8(name[:most], "") + "..."
	}
	return name
}

func (x filler) fill(v reflect.Value, path string) {
	switch kind := v.Kind(); {
	case kind == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		x.fill(v.Elem(), path)
	case kind == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		x.fillStruct(v, path)
	case kind == reflect.Slice:
		x.fillSlice(v, path)
	case kind == reflect.Map:
		x.fillMap(v, path)
	default:
		isNull := x.in.PeekKind() == 'n' // of an element: json.Unmarshal would ignore it
		if err := json.Unmarshal(x.next(), v.Addr().Interface()); err != nil || isNull {
			x.fieldErrors.Add(path, "must be %s", scalarOf(v.Type()))
		}
	}
}

// scalarOf names the values of a type.
func scalarOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[v1.Duration]():
		return "a duration such as 90s, 1h30m or 7d"
	case t == reflect.TypeFor[time.Time]():
		return "a time such as 2026-07-15T00:00:00Z"
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "a number"
	case t.Kind() == reflect.Uint16:
		return "an integer between 0 and 65535"
	}
	return "an integer"
}

func (x filler) fillSlice(v reflect.Value, path string) {
	if !x.begin('[', path, "an array") {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for i := 0; !x.end(']'); i++ {
		if x.fieldErrors.Full() {
			x.next()
			continue
		}
		v.Grow(1)
		v.SetLen(i + 1)
		x.fill(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

// fillMap decodes an object into a map with string keys.
func (x filler) fillMap(v reflect.Value, path string) {
	if !x.begin('{', path, "an object") {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for !x.end('}') {
		name := x.name()
		if x.fieldErrors.Full() {
			x.next()
			continue
		}
		key, element := reflect.ValueOf(name), reflect.New(v.Type().Elem()).Elem()
		if v.MapIndex(key).IsValid() {
			x.fieldErrors.Add(join(path, Clip(name)), "is set twice")
		}
		x.fill(element, join(path, Clip(name)))
		v.SetMapIndex(key, element)
	}
}
