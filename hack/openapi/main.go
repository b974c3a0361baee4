package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes the document of the module in a directory, and its rendition in OpenAPI 3.0.
func run(root string) error {
	document, err := generate(root)
	if err != nil {
		return err
	}
	older, err := rendition(document)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(root, "api", "openapi.yaml"), document, 0o644),
		os.WriteFile(filepath.Join(root, "api", "openapi-3.0.yaml"), older, 0o644))
}
