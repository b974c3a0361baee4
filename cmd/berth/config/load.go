package config

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	v1 "berth/api/v1"
)

// DefaultPath is the file that is read if neither --config nor BERTH_CONFIG names one.
const DefaultPath = "/etc/berth/berth.yaml"

// Loader loads a configuration: the defaults, then the file, then the environment,
// then the flags. It can load again, for a reload. It is not safe for concurrent use.
type Loader struct {
	File string // --config; empty: BERTH_CONFIG, else DefaultPath

	overrides map[string]string // flags by key
	env       map[string]string // as it was at start
	root      bool              // the process runs as root
}

// Loaded is a configuration without errors.
type Loaded struct {
	Config      v1.Config
	Certificate *tls.Certificate // nil without TLS
	Path        string
	Warnings    []string // settings that are allowed and probably not intended
}

// NewLoader returns a loader for a process with this environment ("NAME=value").
func NewLoader(environ []string) *Loader {
	l := &Loader{overrides: map[string]string{}, env: map[string]string{}, root: os.Geteuid() == 0}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			l.env[name] = value
		}
	}
	return l
}

// Env returns a variable of the environment.
func (l *Loader) Env(name string) string { return l.env[name] }

// Override is the flag of one key. It implements pflag.Value.
type Override struct {
	Key
	into map[string]string
}

// Overrides returns a flag for each key but secrets, in the order of the file.
func (l *Loader) Overrides() []Override {
	var list []Override
	for key := range Keys(new(v1.Config)) {
		if !key.Secret() {
			list = append(list, Override{key, l.overrides})
		}
	}
	return list
}

// String returns the text that was given; empty if none was.
func (o Override) String() string { return o.into[o.Name] }

// Set lets text override the key.
func (o Override) Set(text string) error {
	if err := o.Key.Set(text); err != nil {
		return err
	}
	o.into[o.Name] = text
	return nil
}

// Path returns the path of the file.
func (l *Loader) Path() string {
	return cmp.Or(l.File, l.env[EnvPrefix+"CONFIG"], DefaultPath)
}

// Load loads the configuration. Its error is v1.FieldErrors, or wraps
// fs.ErrNotExist if there is no file.
func (l *Loader) Load() (Loaded, error) {
	file, err := os.Open(l.Path())
	if err != nil {
		return Loaded{}, fmt.Errorf("configuration: %w", err)
	}
	defer file.Close()
	out, err := l.read(file)
	if info, statErr := file.Stat(); err == nil && statErr == nil && info.Mode().Perm()&0o077 != 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%s contains tokens, and other users can open it (mode %04o): run chmod 600 on it",
			out.Path, info.Mode().Perm()))
	}
	return out, err
}

// WithPath adds the path of the file to the errors that are about its content.
func (l *Loader) WithPath(err error) error {
	var faults v1.FieldErrors
	if errors.As(err, &faults) {
		return fmt.Errorf("%s: %w", l.Path(), err)
	}
	return err
}

// LoadOrWrite loads the configuration, and writes a file first if there is none. If
// it cannot write one, it loads the defaults, the environment and the flags alone.
func (l *Loader) LoadOrWrite() (out Loaded, written bool, err error) {
	out, err = l.Load()
	if !errors.Is(err, fs.ErrNotExist) {
		return out, false, err
	}
	writeErr := Write(l.Path(), l.DataPath())
	if writeErr == nil || errors.Is(writeErr, fs.ErrExist) {
		out, err = l.Load()
		return out, writeErr == nil, err
	}
	if out, err = l.read(strings.NewReader("")); err != nil {
		return out, false, fmt.Errorf("%w (and no configuration could be written: %w; name a place for it with --config or BERTH_CONFIG)",
			err, writeErr)
	}
	out.Warnings = append(out.Warnings, fmt.Sprintf("no configuration could be written: %v", writeErr))
	return out, false, nil
}

// read applies the file, the environment and the flags to the defaults.
func (l *Loader) read(file io.Reader) (Loaded, error) {
	c := v1.Defaults()
	c.Storage.DataPath = l.DataPath()
	faults := decode(file, &c)
	if len(faults) == 1 && faults[0].Key == "" {
		return Loaded{Path: l.Path()}, faults // it is not a mapping: every further error would follow from that
	}
	faults = append(faults, l.overlay(&c)...)
	c.Complete()
	out := Loaded{Config: c, Path: l.Path()}
	known := len(faults)
	faults = append(faults, withoutKeys(c.Validate(), faults[:known])...)
	if c.Server.TLS.Cert != "" && c.Server.TLS.Key != "" {
		certificate, err := tls.LoadX509KeyPair(c.Server.TLS.Cert, c.Server.TLS.Key)
		if err != nil {
			faults = append(faults, v1.FieldError{Key: "server.tls", Message: err.Error()})
		}
		out.Certificate = &certificate
	}
	out.Warnings = warnings(c)
	return out, faults.Err()
}

// withoutKeys returns faults without those of keys that have one in known.
func withoutKeys(faults, known v1.FieldErrors) v1.FieldErrors {
	seen := map[string]bool{}
	for _, f := range known {
		seen[f.Key] = true
	}
	var out v1.FieldErrors
	for _, f := range faults {
		if !seen[f.Key] {
			out = append(out, f)
		}
	}
	return out
}

func warnings(c v1.Config) []string {
	var out []string
	if !c.Authorization.Enabled {
		out = append(out, "authorization.enabled is false: everyone who reaches the port is an administrator")
	}
	if c.Remote.Enabled && strings.HasPrefix(c.Remote.URL, "http://") {
		out = append(out, "remote.url is not https: remote.token travels in clear")
	}
	if u, err := url.Parse(c.Backups.S3.Endpoint); err == nil && u.Scheme == "http" && !v1.IsLoopback(u.Hostname()) {
		out = append(out, "backups.s3.endpoint is not https: archives travel in clear")
	}
	return out
}

// DataPath returns the default of storage.data_path.
func (l *Loader) DataPath() string {
	if l.root {
		return v1.Defaults().Storage.DataPath
	}
	share := cmp.Or(l.env["XDG_DATA_HOME"], filepath.Join(l.env["HOME"], ".local", "share"))
	return filepath.Join(share, "berth")
}
