package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

const (
	defaultConfigPath = "/etc/berth/berth.yaml"
	maxConfigFile     = 1 << 20 // bytes
	envPrefix         = "BERTH_"
)

// loader makes a configuration: the defaults, then the file, then the
// environment, then the flags. It can be asked again, for a reload.
type loader struct {
	configFlag string            // --config
	flags      map[string]string // key to text, of the flags that were given
	env        map[string]string // as it was at start
	root       bool              // the process runs as root
}

// loaded is a configuration without a fault.
type loaded struct {
	config      v1.Config
	certificate *tls.Certificate // nil without TLS
	path        string
	warnings    []string
}

// newLoader adds --config to cmd and its children.
func newLoader(cmd *cobra.Command, environ []string) *loader {
	l := &loader{flags: map[string]string{}, env: map[string]string{}, root: os.Geteuid() == 0}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			l.env[name] = value
		}
	}
	cmd.PersistentFlags().StringVar(&l.configFlag, "config", "",
		"configuration file (default $"+envPrefix+"CONFIG, else "+defaultConfigPath+")")
	return l
}

// keyFlags adds to cmd a flag for every key but secrets, and returns cmd.
func (l *loader) keyFlags(cmd *cobra.Command) *cobra.Command {
	for key := range leaves(new(v1.Config)) {
		if key.secret() {
			continue
		}
		cmd.Flags().Var(override{key, l.flags}, key.key, "overrides "+key.key+" of the configuration")
		if key.value.Kind() == reflect.Bool {
			cmd.Flags().Lookup(key.key).NoOptDefVal = "true"
		}
	}
	return cmd
}

// override is the flag of one key.
type override struct {
	leaf leaf
	into map[string]string
}

func (o override) String() string { return o.into[o.leaf.key] }

func (o override) Type() string {
	switch o.leaf.value.Interface().(type) {
	case v1.Size:
		return "size"
	case v1.Duration:
		return "duration"
	case []string:
		return "list"
	}
	return o.leaf.value.Kind().String()
}

func (o override) Set(text string) error {
	if err := o.leaf.set(text); err != nil {
		return err
	}
	o.into[o.leaf.key] = text
	return nil
}

// path is the file to read.
func (l *loader) path() string {
	return cmp.Or(l.configFlag, l.env[envPrefix+"CONFIG"], defaultConfigPath)
}

// load reads everything. Its error is v1.Faults, or wraps fs.ErrNotExist when
// there is no file.
func (l *loader) load() (loaded, error) {
	file, err := os.Open(l.path())
	if err != nil {
		return loaded{}, fmt.Errorf("configuration: %w", err)
	}
	defer file.Close()
	out, err := l.read(file)
	if info, statErr := file.Stat(); err == nil && statErr == nil && info.Mode().Perm()&0o077 != 0 {
		out.warnings = append(out.warnings, fmt.Sprintf("%s holds tokens, and others than its owner may open it (mode %04o): chmod 600 it",
			out.path, info.Mode().Perm()))
	}
	return out, err
}

// named adds to faults which file they are in, or had to be.
func (l *loader) named(err error) error {
	var faults v1.FieldErrors
	if errors.As(err, &faults) {
		return fmt.Errorf("%s: %w", l.path(), err)
	}
	return err
}

// loadOrInit is load, but writes a file where there is none; made says so.
// Where none can be written the environment and the flags have to do.
func (l *loader) loadOrInit() (out loaded, made bool, err error) {
	out, err = l.load()
	if !errors.Is(err, fs.ErrNotExist) {
		return out, false, err
	}
	writeErr := writeConfig(l.path(), l.dataPath(), false)
	if writeErr == nil || errors.Is(writeErr, fs.ErrExist) {
		out, err = l.load()
		return out, writeErr == nil, err
	}
	if out, err = l.read(strings.NewReader("")); err != nil {
		return out, false, fmt.Errorf("%w (and no configuration could be written: %w; name a place for it with --config or BERTH_CONFIG)", err, writeErr)
	}
	out.warnings = append(out.warnings, fmt.Sprintf("no configuration could be written: %v", writeErr))
	return out, false, nil
}

// read lays everything over the defaults.
func (l *loader) read(file io.Reader) (loaded, error) {
	c := v1.Defaults()
	c.Storage.DataPath = l.dataPath()
	faults := decodeYAML(file, &c)
	if len(faults) == 1 && faults[0].Key == "" {
		return loaded{path: l.path()}, faults // it is no mapping: what else is missing says nothing
	}
	faults = append(faults, l.overlay(&c)...)
	c.Complete()
	out := loaded{config: c, path: l.path()}
	known := len(faults)
	faults = append(faults, newFaults(faults[:known], c.Validate())...)
	if c.Server.TLS.Cert != "" && c.Server.TLS.Key != "" {
		certificate, err := tls.LoadX509KeyPair(c.Server.TLS.Cert, c.Server.TLS.Key)
		if err != nil {
			faults = append(faults, v1.FieldError{Key: "server.tls", Message: err.Error()})
		}
		out.certificate = &certificate
	}
	out.warnings = warnings(c)
	return out, faults.Err()
}

// newFaults leaves out what is wrong with a key that could not be read at all.
func newFaults(known, more v1.FieldErrors) v1.FieldErrors {
	seen := map[string]bool{}
	for _, f := range known {
		seen[f.Key] = true
	}
	var out v1.FieldErrors
	for _, f := range more {
		if !seen[f.Key] {
			out = append(out, f)
		}
	}
	return out
}

// warnings are what is allowed, and seldom meant.
func warnings(c v1.Config) []string {
	var out []string
	if !c.Authorization.Enabled {
		out = append(out, "authorization.enabled is false: whoever reaches the port is an administrator")
	}
	if c.Remote.Enabled && strings.HasPrefix(c.Remote.URL, "http://") {
		out = append(out, "remote.url is not https: remote.token travels in clear")
	}
	return out
}

// dataPath is the default of storage.data_path.
func (l *loader) dataPath() string {
	if l.root {
		return v1.Defaults().Storage.DataPath
	}
	share := cmp.Or(l.env["XDG_DATA_HOME"], filepath.Join(l.env["HOME"], ".local", "share"))
	return filepath.Join(share, "berth")
}
