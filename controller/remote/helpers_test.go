package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	v1 "berth/api/v1"
	"berth/hack/test/openapitest"
	"berth/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "panel-secret-token"

// request is a request that the panel received.
type request struct {
	Node   string    `json:"node"`
	Events []message `json:"events"`

	url, token string
	at         time.Duration // since the start of the test
}

// panel is an http.RoundTripper that responds as a test defines.
type panel struct {
	t      testing.TB
	mu     sync.Mutex
	began  time.Time
	answer func(r request) (status int, err error)
	header http.Header
	got    []request
	taken  []message // of the requests with a 2xx response
}

func (p *panel) RoundTrip(req *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	openapitest.CheckValue(p.t, "WebhookBatch", text)
	var r request
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	r.url, r.token = req.URL.String(), req.Header.Get("Authorization")
	p.mu.Lock()
	defer p.mu.Unlock()
	r.at = time.Since(p.began)
	p.got = append(p.got, r)
	status, err := p.answer(r)
	if status >= 200 && status < 300 {
		p.taken = append(p.taken, r.Events...)
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: p.header, Body: io.NopCloser(bytes.NewReader(nil)), Request: req}, nil
}

func (p *panel) set(answer func(request) (int, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

func (p *panel) requests() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]request(nil), p.got...)
}

// seqs returns the seqs that the panel accepted, in order.
func (p *panel) seqs() (list []uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.taken {
		list = append(list, m.Seq)
	}
	return list
}

func always(status int) func(request) (int, error) {
	return func(request) (int, error) { return status, nil }
}

func away(request) (int, error) { return 0, errors.New("connection refused") }

// world is a sender and its panel in a bubble of synctest.
type world struct {
	*testing.T
	store *store.Store
	panel *panel
	reg   *prometheus.Registry
	log   *bytes.Buffer
	stop  func()

	mu       sync.Mutex
	settings v1.Config
}

// live runs a sender in a bubble.
func live(t *testing.T, during func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		w := &world{T: t, store: s, panel: &panel{t: t, answer: always(204), began: time.Now()}, log: &bytes.Buffer{}}
		w.change(func(r *v1.RemoteConfig) {
			*r = v1.RemoteConfig{Enabled: true, URL: "https://panel.example/events?key=hidden", Token: secret}
		})
		w.start()
		during(w)
		w.stop()
		require.NoError(t, s.Close())
		require.NotContains(t, w.log.String(), secret)
		require.NotContains(t, w.log.String(), "hidden")
	})
}

// start starts a sender, as the daemon does. stop ends it.
func (w *world) start() {
	w.reg = prometheus.NewRegistry()
	s, err := New(Options{Store: w.store, Settings: w.current, Hostname: "host-1", Version: "1.2.3",
		Transport: w.panel, Registerer: w.reg,
		Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NoError(w, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	w.stop = func() {
		cancel()
		require.NoError(w, <-ended)
	}
}

func (w *world) current() v1.Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settings
}

func (w *world) change(f func(*v1.RemoteConfig)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.settings.Remote)
}

// emit stores n transitions.
func (w *world) emit(n int) {
	w.Helper()
	require.NoError(w, w.store.Update(func(tx *store.Tx) error {
		for i := range n {
			tx.Emit(v1.Event{Container: fmt.Sprint("c", i), Event: v1.EventState, Data: "running"})
		}
		return nil
	}))
}

// pass advances the clock of the bubble by d.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// metric reads one series. label may be empty.
func (w *world) metric(name, label string) float64 {
	w.Helper()
	families, err := w.reg.Gather()
	require.NoError(w, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() != name || label != "" && m.GetLabel()[0].GetValue() != label {
				continue
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	w.Fatalf("no metric %s %s", name, label)
	return 0
}

// upTo returns 1, 2, ... n.
func upTo(n int) (list []uint64) {
	for i := range n {
		list = append(list, uint64(i+1))
	}
	return list
}
