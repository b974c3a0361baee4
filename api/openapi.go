// Package api holds the document of the interface, as GET /openapi.yaml serves
// it. What it describes is in the packages below.
package api

import _ "embed"

// Document is the OpenAPI document, in YAML.
//
//go:embed openapi.yaml
var Document []byte
