// Package panel holds a panel in TypeScript, and the tools that lint the OpenAPI
// document. The panel is written against the types that openapi-typescript generates
// from api/openapi.yaml, with openapi-fetch, so it compiles only if the document describes
// what a client needs. Its test plays the main job on Node.js against the real daemon, which is
// killed meanwhile.
//
// npm.sh installs Node.js and the packages of package-lock.json into .cache.
package panel
