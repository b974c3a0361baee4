// Package api holds the document of the interface, as GET /openapi.yaml serves
// it. What it describes is in the packages below.
package api
