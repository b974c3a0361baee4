package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"

	v1 "berth/api/v1"
)

// Setup is what the panel's page of a node has an operator type behind `wings configure`.
type Setup struct {
	Panel    string    // its base address
	Key      v1.Secret // an application key of the panel with the right to read nodes
	Node     int
	Path     string // of the file
	Override bool   // replace a file that is there
}

// applicationKey matches the keys of both families.
var applicationKey = regexp.MustCompile(`^(peli|papp|ptla)_\w{43}$`)

// Configure asks the panel for the settings of a node, and writes its file.
func Configure(ctx context.Context, s Setup, client *http.Client) error {
	s.Panel = strings.TrimRight(s.Panel, "/")
	if u, err := url.Parse(s.Panel); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--panel-url: %q is not an address such as https://panel.example.com", s.Panel)
	}
	if !applicationKey.MatchString(s.Key.Reveal()) {
		return errors.New("--token: is not an application key of a panel: they begin with peli_, papp_ or ptla_")
	}
	if _, err := os.Lstat(s.Path); !errors.Is(err, fs.ErrNotExist) && !s.Override {
		return fmt.Errorf("%s: %w: replace it with --override", s.Path, fs.ErrExist)
	}
	object, err := settings(ctx, s, client)
	if err != nil {
		return err
	}
	delete(object, "allowed_mounts") // the panel's list is not the node's: what customers may mount is for the operator
	object["remote"] = s.Panel
	f := &File{Path: s.Path, whole: object}
	if err := f.use(nil); err != nil {
		return fmt.Errorf("the panel's settings of the node: %w", err)
	}
	return f.Save()
}

// settings returns the object that the panel has for a node.
func settings(ctx context.Context, s Setup, client *http.Client) (object map[string]any, err error) {
	address := fmt.Sprintf("%s/api/application/nodes/%d/configuration", s.Panel, s.Node)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+s.Key.Reveal())
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("the panel answered %s: the key is wrong, or must not read nodes", response.Status)
	case response.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("the panel answered %s: it has no node %d, or --panel-url is not the address of a panel", response.Status, s.Node)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the panel answered %s", response.Status)
	case len(text) > maxFile:
		return nil, fmt.Errorf("the panel's answer is larger than %s", v1.Size(maxFile))
	}
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return nil, errors.New("the answer is not that of a panel: check --panel-url")
	}
	return object, nil
}
