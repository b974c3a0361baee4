package config

import (
	"fmt"
	"io"
	"reflect"

	v1 "berth/api/v1"
	"berth/cmd/berth/yamlfile"
)

const maxFile = 1 << 20 // bytes

// decode reads a configuration file over c.
func decode(file io.Reader, c *v1.Config) v1.FieldErrors {
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return v1.FieldErrors{{Message: err.Error()}}
	}
	if len(text) > maxFile {
		return v1.FieldErrors{{Message: fmt.Sprintf("is larger than %s", v1.Size(maxFile))}}
	}
	decoder := yamlfile.Decoder{
		Unknown: "is not a key of the configuration",
		Set:     func(into reflect.Value, scalar yamlfile.Scalar) error { return set(into, scalar.Text()) },
	}
	return decoder.Decode(text, c)
}
