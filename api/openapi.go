package api

//go:generate go run berth/hack/openapi ..

import _ "embed"

// Document is the OpenAPI document, in YAML.
//
//go:embed openapi.yaml
var Document []byte

// Document30 is Document in OpenAPI 3.0, for clients that do not read 3.1.
//
//go:embed openapi-3.0.yaml
var Document30 []byte
