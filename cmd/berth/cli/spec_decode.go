package cli

import (
	"encoding"
	"errors"
	"math"
	"reflect"
	"time"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/cmd/berth/yamlfile"
)

// decodeSpec reads a container in YAML or JSON, which is YAML. It accepts and ignores
// the status fields, so that a container can be applied as it was printed.
func decodeSpec(document yamlfile.Document) (client.ContainerSpec, error) {
	var c client.Container
	decoder := yamlfile.Decoder{Unknown: "is not a field of a container", Set: setField, Aliases: true}
	return c.ContainerSpec, decoder.DecodeDocument(document, &c).Err()
}

// setField sets a field of a container. A string field takes any scalar as it is
// written in the file: 1.10 stays "1.10", and a date stays a text.
func setField(into reflect.Value, scalar yamlfile.Scalar) error {
	switch v := into.Addr().Interface().(type) {
	case *v1.Duration:
		return setDuration(v, scalar)
	case encoding.TextUnmarshaler:
		if v.UnmarshalText([]byte(scalar.Text())) != nil {
			return errors.New("must be a time such as 2006-01-02T15:04:05Z")
		}
		return nil
	}
	if into.Kind() == reflect.String {
		into.SetString(scalar.Text())
		return nil
	}
	if into.Kind() == reflect.Bool {
		if !scalar.IsBool() || scalar.Decode(into.Addr().Interface()) != nil {
			return errors.New("must be true or false")
		}
		return nil
	}
	return setNumber(into, scalar)
}

func setDuration(d *v1.Duration, scalar yamlfile.Scalar) error {
	var seconds float64
	if scalar.IsNumber() && scalar.Decode(&seconds) == nil {
		*d = v1.Duration(seconds * float64(time.Second))
		return nil
	}
	if d.UnmarshalText([]byte(scalar.Text())) != nil {
		return errors.New("must be a duration such as 90s, 1h30m or 7d, or a number of seconds")
	}
	return nil
}

func setNumber(into reflect.Value, scalar yamlfile.Scalar) error {
	var n float64
	ok := scalar.IsNumber() && scalar.Decode(&n) == nil
	if into.Kind() == reflect.Float64 {
		if !ok {
			return errors.New("must be a number")
		}
		into.SetFloat(n)
		return nil
	}
	if !ok || n != math.Trunc(n) || math.IsInf(n, 0) || scalar.Decode(into.Addr().Interface()) != nil {
		return errors.New("must be a whole number")
	}
	return nil
}
