package config

import (
	"fmt"
	"os"
	"path/filepath"
)

// Keeper returns the path of berth-keeper, which is beside berth unless the operator has set another.
func Keeper(path string) (string, error) {
	if path == "" {
		own, err := os.Executable()
		if err != nil {
			return "", err
		}
		path = filepath.Join(filepath.Dir(own), "berth-keeper")
	}
	if _, err := os.Stat(path); err != nil {
		return path, fmt.Errorf("%w: install berth-keeper beside berth", err)
	}
	return path, nil
}
