// Command openapi writes api/openapi.yaml: "go generate ./api". The file openapi.yaml beside it
// is written by hand: descriptions, examples, limits of values. The rest follows from the code:
// the fields of each schema and which are required (the structs, whose comments describe them),
// and for each operation its scope, its parameters that follow from the route, the headers and the refusals
// that every such route has, and the fields that the example of a container lacks, with their
// defaults.
//
// It copies the lines of the file, and adds those that are missing there. A schema or an
// operation that contradicts the code is an error.
package main
