// Command sbom writes a software bill of materials of a Go binary to standard output, as
// CycloneDX 1.5 in JSON: every module that is linked into it, with its version and
// checksum, and Go itself. It reads what the Go toolchain has recorded in the binary, so it
// names what is in it and nothing else. Equal binaries give equal bills.
//
//	go run ./hack/sbom VERSION BINARY
package main
