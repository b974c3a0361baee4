// Package openapitest compares the interface with the OpenAPI document: Check
// validates a response, CheckValue any JSON text, and Routes lists the endpoints for
// tests of the router. Its own tests compare the document's enums with the code.
//
// Only tests import it. It does not know how the interface is served.
package openapitest
