package main

import (
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

// run writes the document of the module in a directory.
func run(root string) error {
	document, err := generate(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "api", "openapi.yaml"), document, 0o644)
}
