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

// secrets are what nobody may find in what a daemon leaves: the tokens and
// passwords of its configurations, and the tokens that it minted. Beside them
// are the texts of refusals that its clients have read.
type secrets struct {
	mu       sync.Mutex
	known    map[string]bool
	refusals map[string]bool
}

func newSecrets() *secrets { return &secrets{known: map[string]bool{}, refusals: map[string]bool{}} }

// add keeps a secret; of a token what makes it one.
func (s *secrets) add(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[strings.TrimPrefix(secret, "berth_")] = true
}

// configured are the values of tokens and passwords in a configuration. What is
// shorter is no secret but a value that a test expects to be refused.
var configured = regexp.MustCompile(`(?:token|password)"?: *["']?([^\s"',{}]{7,})`)

func (s *secrets) addConfig(text string) {
	for _, found := range configured.FindAllStringSubmatch(text, -1) {
		s.add(found[1])
	}
}

// answered keeps what an answer tells: a minted token, or a refusal.
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
			t.Errorf("%s holds the secret %q:\n%s", where, secret, around(text, secret))
		}
	}
}

// searchRefusals looks into all refusals that were read.
func (s *secrets) searchRefusals(t testing.TB) {
	s.mu.Lock()
	all := make([]string, 0, len(s.refusals))
	for text := range s.refusals {
		all = append(all, text)
	}
	s.mu.Unlock()
	s.search(t, "a refusal", strings.Join(all, "\n"))
}

// Search looks for every secret of b in a text that the test has found somewhere.
func Search(t testing.TB, b *Berth, where, text string) { b.secrets.search(t, where, text) }

// searchProcess looks into what everybody on the host may read of the daemon.
func searchProcess(b *Berth) {
	for _, file := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", b.Pid(), file))
		if err == nil { // else it has just ended
			b.secrets.search(b.t, "the daemon's "+file, string(text))
		}
	}
}

// searchMetrics looks into what a monitor reads.
func searchMetrics(b *Berth) {
	answer, err := b.Try(b.background(), "GET", "/metrics", nil)
	if err != nil {
		return // the test has made it so
	}
	if answer.Status != 200 {
		b.t.Errorf("GET /metrics: %d", answer.Status)
	}
	b.secrets.search(b.t, "the metrics", string(answer.Body))
}

// searchContainer looks into everything that the engine tells of a container.
func searchContainer(b *Berth, id string) {
	if found, ok := b.Engine.Inspect(b.t, id); ok {
		text, err := json.Marshal(found.Raw)
		if err != nil {
			b.t.Error(err)
		}
		b.secrets.search(b.t, "container "+id, string(text))
	}
}
