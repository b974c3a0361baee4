package openapitest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"berth/api"
)

// schemas holds the compiled schemas of the document. kin-openapi would compile one
// for each value, which takes 10 ms for a container.
type schemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by reference
}

const documentURL = "openapi.json"

func newSchemas() (*schemas, error) {
	var doc any
	if err := yaml.Unmarshal(api.Document, &doc); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	return &schemas{compiler: c, compiled: map[string]*jsonschema.Schema{}}, c.AddResource(documentURL, doc)
}

// validate returns an error unless the JSON text is valid against the schema of a
// reference such as "#/components/schemas/Container".
func (s *schemas) validate(ref string, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	schema, err := s.compile(ref)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func (s *schemas) compile(ref string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.compiled[ref]; known != nil {
		return known, nil
	}
	schema, err := s.compiler.Compile(documentURL + ref)
	if err == nil {
		s.compiled[ref] = schema
	}
	return schema, err
}

var loadSchemas = sync.OnceValues(newSchemas)

// CheckValue fails t unless the JSON text is valid against a schema of the
// document, such as "SocketMessage".
func CheckValue(t testing.TB, schema string, text []byte) {
	t.Helper()
	s, err := loadSchemas()
	if err != nil {
		t.Fatalf("openapi.yaml: %v", err)
	}
	if err := s.validate("#/components/schemas/"+schema, text); err != nil {
		t.Errorf("no %s of openapi.yaml: %v\n%.500s", schema, err, text)
	}
}
