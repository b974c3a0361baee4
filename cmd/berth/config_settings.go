package main

import (
	"crypto/tls"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	v1 "berth/api/v1"
)

// liveKeys are read anew by those who use them, each time they use them. Every
// other key is read once, at start. A key that ends in a dot is a whole section.
var liveKeys = []string{
	"server.tls.", "server.body_limit", "server.allowed_origins", "server.trusted_proxies",
	"authorization.token", "authorization.max_ttl", "docker.allowed_mounts", "docker.registries", "docker.root_limit",
	"remote.", "storage.max_file_size", "reconcile.create_wait",
	"events.", "metrics.public", "log.level",
}

// isLive says whether key can change from one configuration to the other
// without a restart. A certificate can be replaced; TLS cannot come or go.
func isLive(key string, from, to v1.Config) bool {
	if strings.HasPrefix(key, "server.tls.") && from.Server.TLS.Enabled() != to.Server.TLS.Enabled() {
		return false
	}
	for _, live := range liveKeys {
		if key == live || strings.HasSuffix(live, ".") && strings.HasPrefix(key, live) {
			return true
		}
	}
	return false
}

// Settings is the configuration in force. It changes as a whole, or not at all.
type Settings struct {
	load      func() (loaded, error)
	reloading sync.Mutex
	current   atomic.Pointer[loaded]
	changed   func(v1.Config)
	next      atomic.Pointer[chan struct{}] // closed when current changes
}

// newSettings puts first in force. changed, if any, is called with every later
// configuration, one at a time, before Reload returns.
func newSettings(first loaded, load func() (loaded, error), changed func(v1.Config)) *Settings {
	s := &Settings{load: load, changed: changed}
	s.current.Store(&first)
	next := make(chan struct{})
	s.next.Store(&next)
	return s
}

// Changed returns a channel that is closed when Current has changed. Ask for it
// before Current, so that no change is missed.
func (s *Settings) Changed() <-chan struct{} { return *s.next.Load() }

// Current is the configuration in force. A key that waits for a restart still
// has its old value. Its lists and maps must not be changed.
func (s *Settings) Current() v1.Config { return s.current.Load().config }

// Reload reads everything again. On a fault the old configuration stays in
// force and the error says what is wrong, as v1.Faults where it is about keys.
// Otherwise it returns the keys whose new value waits for a restart.
func (s *Settings) Reload() (restartRequired []string, err error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	next, err := s.load()
	if err != nil {
		return nil, err
	}
	restartRequired, err = s.swap(next)
	if err == nil && s.changed != nil {
		s.changed(s.Current())
	}
	return restartRequired, err
}

// swap puts the live part of next in force.
func (s *Settings) swap(next loaded) ([]string, error) {
	old := s.Current()
	waiting := []string{}
	merged := next.config
	mergedLeaves := map[string]leaf{}
	for l := range leaves(&merged) {
		mergedLeaves[l.key] = l
	}
	for l := range leaves(&old) {
		into := mergedLeaves[l.key].value
		if isLive(l.key, old, next.config) || equal(l.value, into) {
			continue
		}
		into.Set(l.value)
		waiting = append(waiting, l.key)
	}
	if err := merged.Validate().Err(); err != nil {
		return nil, err
	}
	next.config = merged
	if !merged.Server.TLS.Enabled() {
		next.certificate = nil
	} else if next.certificate == nil {
		next.certificate = s.current.Load().certificate
	}
	s.current.Store(&next)
	later := make(chan struct{})
	close(*s.next.Swap(&later))
	return waiting, nil
}

// equal takes an empty list for a missing one.
func equal(a, b reflect.Value) bool {
	if k := a.Kind(); (k == reflect.Slice || k == reflect.Map) && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// GetCertificate is for tls.Config: the certificate as of the last reload.
func (s *Settings) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.current.Load().certificate; c != nil {
		return c, nil
	}
	return nil, errors.New("no certificate is configured")
}
