package roundtrip

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

// TestRoundTrip reads every example of the document into its generated type, and
// writes it again. Nothing is lost, nothing is unknown, and each member of a union has
// its discriminator. TestGeneratedTypes writes the examples and the types.
func TestRoundTrip(t *testing.T) {
	text, err := os.ReadFile("examples.json")
	if err != nil {
		t.Fatal(err)
	}
	var examples []struct {
		Name, Schema string
		Value        json.RawMessage
	}
	if err := json.Unmarshal(text, &examples); err != nil {
		t.Fatal(err)
	}
	for _, e := range examples {
		t.Run(e.Name, func(t *testing.T) {
			value := types[e.Schema]()
			decoder := json.NewDecoder(bytes.NewReader(e.Value))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(value); err != nil {
				t.Fatal(err)
			}
			equal(t, e.Value, value)
			unions(t, reflect.ValueOf(value))
		})
	}
}

// equal fails t unless value is written as want.
func equal(t *testing.T, want []byte, value any) {
	t.Helper()
	have, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var x, y any
	if json.Unmarshal(want, &x) != nil || json.Unmarshal(have, &y) != nil || !reflect.DeepEqual(x, y) {
		t.Errorf("%T:\n%s\nbecomes\n%s", value, want, have)
	}
}

// unions checks the unions with a discriminator in v.
func unions(t *testing.T, v reflect.Value) {
	t.Helper()
	if !v.CanInterface() {
		return
	}
	union, is := v.Interface().(interface{ ValueByDiscriminator() (any, error) })
	if is && v.Kind() == reflect.Struct {
		member, err := union.ValueByDiscriminator()
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(union)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, want, member)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			unions(t, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			unions(t, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			unions(t, v.Field(i))
		}
	}
}
