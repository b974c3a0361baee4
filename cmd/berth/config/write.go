package config

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"berth/api/auth"
)

//go:embed template.yaml
var template string

// render returns a commented configuration with a fresh token.
func render(dataPath string) string {
	return strings.NewReplacer("<token>", auth.NewSecret().Reveal(), "<data_path>", strconv.Quote(dataPath)).Replace(template)
}

// Write writes a new configuration with a fresh token to path, atomically and with
// mode 0600. If the file exists, the error is fs.ErrExist.
func Write(path, dataPath string) error {
	return write(path, dataPath, func() error { return nil })
}

// Renew is Write, but a file that exists is renamed to <path>.bak.
func Renew(path, dataPath string) error {
	return write(path, dataPath, func() error {
		if err := os.Rename(path, path+".bak"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// write calls before when the new file is complete, and then gives it its name.
func write(path, dataPath string, before func() error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temporary, err := writeTemporary(dir, render(dataPath))
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	if err := before(); err != nil {
		return err
	}
	if err := os.Link(temporary, path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s: %w", path, fs.ErrExist)
		}
		return err
	}
	return syncDir(dir)
}

// Replace writes text to path, atomically and durably, with mode 0600.
func Replace(path, text string) error {
	dir := filepath.Dir(path)
	temporary, err := writeTemporary(dir, text)
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return syncDir(dir)
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writeTemporary writes a durable file of mode 0600 and returns its name.
func writeTemporary(dir, text string) (string, error) {
	f, err := os.CreateTemp(dir, ".berth-*.tmp")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
