// Package openapitest checks what a test sees of the interface against the
// OpenAPI document: Check each response, Routes for the router.
//
// It is for tests, and must not know how the interface is served.
package openapitest
