package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// letsEncrypt is where the panel expects certificates. It sends paths below it whatever the node
// has, so they never replace the node's own.
const letsEncrypt = "/etc/letsencrypt/live/"

// Update returns the file after the panel has sent new settings: they replace the keys that they
// have, except for the directories of the node and its remote.
func (f *File) Update(object []byte, environ []string) (*File, error) {
	var sent map[string]any
	if err := json.Unmarshal(object, &sent); err != nil {
		return nil, err
	}
	delete(sent, "remote")
	delete(sent, "allowed_mounts")
	if system, is := sent["system"].(map[string]any); is {
		for key := range system {
			if key == "data" || strings.HasSuffix(key, "_directory") {
				delete(system, key)
			}
		}
	}
	if api, is := sent["api"].(map[string]any); is {
		if ssl, is := api["ssl"].(map[string]any); is {
			for _, key := range []string{"cert", "key"} {
				if path, _ := ssl[key].(string); strings.HasPrefix(path, letsEncrypt) {
					delete(ssl, key)
				}
			}
		}
	}
	next := &File{Path: f.Path, whole: merge(f.whole, sent)}
	return next, next.use(environ)
}

// merge returns a map with the values of another in it.
func merge(into, from map[string]any) map[string]any {
	all := maps.Clone(into)
	for key, value := range from {
		old, both := all[key].(map[string]any)
		if inner, is := value.(map[string]any); is && both {
			value = merge(old, inner)
		}
		all[key] = value
	}
	return all
}

// Save writes the file, in one step and with mode 0600. Keys that the bridge does not use stay.
func (f *File) Save() error {
	text, err := yaml.Marshal(f.whole)
	if err != nil {
		return err
	}
	return Replace(f.Path, text)
}

// Replace writes a file in one step, durably and with mode 0600.
func Replace(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".berth-wings-*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return SyncFolder(dir)
}

// SyncFolder makes the names in a folder durable.
func SyncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
