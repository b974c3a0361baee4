package config

import (
	"crypto/tls"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	v1 "berth/api/v1"
)

// isLive reports whether key can change from one configuration to the other without
// a restart: its users read it each time they use it. Every other key is read once,
// at start. A certificate can be replaced; TLS cannot be switched on or off.
func isLive(key string, from, to v1.Config) bool {
	section, _, _ := strings.Cut(key, ".")
	switch section {
	case "remote", "events", "audit", "files", "transfers":
		return true
	}
	switch key {
	case "server.tls.cert", "server.tls.key":
		return from.Server.TLS.Enabled() == to.Server.TLS.Enabled()
	case "server.body_limit", "server.allowed_origins", "server.trusted_proxies",
		"sftp.max_sessions", "sftp.max_sessions_per_token", "sftp.idle_timeout",
		"authorization.token", "authorization.max_ttl",
		"docker.allowed_mounts", "docker.registries", "docker.root_limit", "docker.read_only_root", "docker.pull_reserve",
		"docker.image_retention",
		"kubernetes.allowed_placement", "kubernetes.default_placement",
		"backups.max_size", "backups.max_volume_size", "backups.max_per_volume", "backups.s3.max_size",
		"storage.max_file_size", "reconcile.create_wait", "metrics.public", "ui.enabled", "debug.pprof", "log.level":
		return true
	}
	return false
}

// Settings is the configuration in force. It changes as a whole or not at all. It is
// safe for concurrent use.
type Settings struct {
	load      func() (Loaded, error)
	reloading sync.Mutex
	current   atomic.Pointer[Loaded]
	next      atomic.Pointer[chan struct{}] // closed when current changes
}

// NewSettings returns settings that begin with first and reload with load.
func NewSettings(first Loaded, load func() (Loaded, error)) *Settings {
	s := &Settings{load: load}
	s.current.Store(&first)
	next := make(chan struct{})
	s.next.Store(&next)
	return s
}

// Changed returns a channel that is closed at the next change of Current. A caller
// that needs every change calls Changed before Current.
func (s *Settings) Changed() <-chan struct{} { return *s.next.Load() }

// Current returns the configuration in force. A key that takes effect at the next
// start still has its old value. The caller must not change its lists and maps.
func (s *Settings) Current() v1.Config { return s.current.Load().Config }

// Reload loads the configuration again and returns the keys whose new value takes
// effect at the next start. On an error, which is v1.FieldErrors if it is about
// keys, the old configuration stays in force.
func (s *Settings) Reload() (restartRequired []string, err error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	next, err := s.load()
	if err != nil {
		return nil, err
	}
	return s.swap(next)
}

// swap puts the live keys of next in force, and returns the others that differ.
func (s *Settings) swap(next Loaded) ([]string, error) {
	old := s.Current()
	restart := []string{}
	merged := next.Config
	into := map[string]Key{}
	for key := range Keys(&merged) {
		into[key.Name] = key
	}
	for key := range Keys(&old) {
		if isLive(key.Name, old, next.Config) || equal(key.value, into[key.Name].value) {
			continue
		}
		into[key.Name].value.Set(key.value)
		restart = append(restart, key.Name)
	}
	if err := merged.Validate().Err(); err != nil {
		return nil, err
	}
	next.Config = merged
	if !merged.Server.TLS.Enabled() {
		next.Certificate = nil
	} else if next.Certificate == nil {
		next.Certificate = s.current.Load().Certificate
	}
	s.current.Store(&next)
	later := make(chan struct{})
	close(*s.next.Swap(&later))
	return restart, nil
}

// equal reports whether two values are equal. A nil list or map equals an empty one.
func equal(a, b reflect.Value) bool {
	if k := a.Kind(); (k == reflect.Slice || k == reflect.Map) && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// GetCertificate returns the certificate as of the last reload, for tls.Config.
func (s *Settings) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.current.Load().Certificate; c != nil {
		return c, nil
	}
	return nil, errors.New("no certificate is configured")
}
