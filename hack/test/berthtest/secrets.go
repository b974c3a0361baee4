package berthtest

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// secrets are the tokens and passwords of a daemon's configurations and the tokens that
// it created. None of them may appear in its traces. refusals are the error responses
// that its clients received.
type secrets struct {
	mu       sync.Mutex
	known    map[string]bool
	refusals map[string]bool
}

func newSecrets() *secrets { return &secrets{known: map[string]bool{}, refusals: map[string]bool{}} }

// add records a secret; of a token, the part after its prefix.
func (s *secrets) add(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[strings.TrimPrefix(secret, "berth_")] = true
}

// configured matches the tokens and passwords in a configuration. Shorter values are
// not secrets, but values that a test expects to be refused.
var configured = regexp.MustCompile(`(?:token|password)"?: *["']?([^\s"',{}]{7,})`)

func (s *secrets) addConfig(text string) {
	for _, found := range configured.FindAllStringSubmatch(text, -1) {
		s.add(found[1])
	}
}

// answered records the created token, or the refusal, in a response.
func (s *secrets) answered(a Answer) {
	var minted struct {
		Token string `json:"token"`
	}
	switch {
	case a.Status >= 400 && len(a.Body) < 1<<20:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refusals[fmt.Sprint(a.Header, string(a.Body))] = true
	case a.Status == 200 && json.Unmarshal(a.Body, &minted) == nil && minted.Token != "":
		s.add(minted.Token)
	}
}

// search fails the test for every secret in text.
func (s *secrets) search(t testing.TB, where, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for secret := range s.known {
		if strings.Contains(text, secret) {
			t.Errorf("%s contains the secret %q:\n%s", where, secret, around(text, secret))
		}
	}
}

// searchRefusals searches the refusals that were received.
func (s *secrets) searchRefusals(t testing.TB) {
	s.mu.Lock()
	all := make([]string, 0, len(s.refusals))
	for text := range s.refusals {
		all = append(all, text)
	}
	s.mu.Unlock()
	s.search(t, "a refusal", strings.Join(all, "\n"))
}

// Search fails the test if a secret of b is in text.
func Search(t testing.TB, b *Berth, where, text string) { b.secrets.search(t, where, text) }

// searchProcess searches the environment and the arguments of the daemon.
func searchProcess(b *Berth) {
	for _, file := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", b.Pid(), file))
		if err == nil { // else it has just exited
			b.secrets.search(b.t, "the daemon's "+file, string(text))
		}
	}
}

// searchMetrics searches the metrics.
func searchMetrics(b *Berth) {
	answer, err := b.Try(b.background(), "GET", "/metrics", nil)
	if err != nil {
		return // the test has made the daemon unreachable
	}
	if answer.Status != 200 {
		b.t.Errorf("GET /metrics: %d", answer.Status)
	}
	b.secrets.search(b.t, "the metrics", string(answer.Body))
}

// searchContainer searches everything that the engine returns about a container.
func searchContainer(b *Berth, id string) {
	if found, ok := b.Engine.Inspect(b.t, id); ok {
		text, err := json.Marshal(found.Raw)
		if err != nil {
			b.t.Error(err)
		}
		b.secrets.search(b.t, "container "+id, string(text))
	}
}
