package api

//go:generate go run berth/hack/openapi ..

import _ "embed"

// Document is the OpenAPI document, in YAML.
//
//go:embed openapi.yaml
var Document []byte
