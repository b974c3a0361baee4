package cli

import (
	"errors"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"sigs.k8s.io/yaml"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

// decodeSpec reads a container in YAML or JSON, which is YAML. It accepts and ignores
// the status fields, so that a container can be applied as it was printed.
func decodeSpec(text []byte) (client.ContainerSpec, error) {
	text, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return client.ContainerSpec{}, errors.New(config.YAMLError(err))
	}
	var c client.Container
	err = json.Unmarshal(text, &c, json.RejectUnknownMembers(true))
	var fault *json.SemanticError
	if errors.As(err, &fault) {
		err = errors.New(strings.TrimPrefix(fieldOf(fault)+": "+messageOf(fault), ": "))
	}
	return c.ContainerSpec, err
}

// element matches the index of a list in a path such as ports.1.port.
var element = regexp.MustCompile(`\.([0-9]+)`)

// fieldOf returns the field of an error, such as ports[1].port.
func fieldOf(fault *json.SemanticError) string {
	var path strings.Builder
	for token := range fault.JSONPointer.Tokens() {
		path.WriteString("." + token)
	}
	return strings.TrimPrefix(element.ReplaceAllString(path.String(), "[$1]"), ".")
}

// messageOf returns what is wrong with the field of an error.
func messageOf(fault *json.SemanticError) string {
	switch {
	case errors.Is(fault, json.ErrUnknownName):
		return "is not a field of a container"
	case fault.GoType == nil:
		return fault.Error()
	case fault.GoType == reflect.TypeFor[v1.Duration]():
		return "must be a duration such as 90s, 1h30m or 7d, or a number of seconds"
	case fault.GoType == reflect.TypeFor[time.Time]():
		return "must be a time such as 2006-01-02T15:04:05Z"
	}
	switch fault.GoType.Kind() {
	case reflect.String:
		if fault.JSONKind == '{' || fault.JSONKind == '[' {
			return "must be a single value"
		}
		return "must be a text: put it in quotes" // 1.10 is 1.1 by now, and 0123 is 83
	case reflect.Bool:
		return "must be true or false"
	case reflect.Float64:
		return "must be a number"
	case reflect.Slice:
		return "must be a list"
	case reflect.Struct, reflect.Map:
		return "must be a mapping"
	}
	return "must be a whole number"
}
