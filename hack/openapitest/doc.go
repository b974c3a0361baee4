// Package openapitest compares the interface with the OpenAPI document: Check
// validates a response, and Routes lists the endpoints for tests of the router.
//
// Only tests import it. It does not know how the interface is served.
package openapitest
