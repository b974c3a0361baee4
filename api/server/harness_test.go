package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"berth/api/intent"
	"berth/api/limit"
	"berth/api/stream"
	"berth/api/ui"
	v1 "berth/api/v1"
	"berth/hack/test/openapitest"
	"berth/store"
)

const adminToken = "berth_0123456789abcdef0123456789abcdef"

// noArchives is Archives without any, and without S3.
type noArchives struct{}

func (noArchives) Has(t v1.Target) bool { return t == v1.TargetLocal }

func (noArchives) Fetch(context.Context, v1.Target, string, string) (*os.File, string, error) {
	return nil, "", v1.ErrBackupNotFound
}

func (noArchives) List(context.Context, v1.Backup, string) ([]v1.FileEntry, error) {
	return nil, v1.ErrBackupNotFound
}

func (noArchives) CheckSpace(int64, int64) error { return nil }

func (noArchives) Receive(context.Context, v1.ArrivalBackup, int64, io.Reader) error {
	return v1.ErrBackupNotFound
}

func (noArchives) Arrived(v1.ArrivalBackup) (int64, bool) { return 0, false }

// settings is a configuration that a test changes.
type settings struct {
	mu     sync.Mutex
	config v1.Config
	reload func() ([]string, error)
	next   chan struct{}
}

func (s *settings) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

func (s *settings) Current() v1.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config
}

func (s *settings) Reload() ([]string, error) { return s.reload() }

func (s *settings) change(f func(*v1.Config)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.config)
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// harness is a server on a loopback port, on a real store in memory.
type harness struct {
	t        *testing.T
	store    *store.Store
	settings *settings
	hub      *stream.Hub
	console  *console
	registry *prometheus.Registry
	server   *Server
	base     string
	client   *http.Client
}

// console is the Console of containers that all run, except for "stopped". For
// "away" the engine does not answer.
type console struct {
	mu   sync.Mutex
	sent []string
}

func (c *console) Send(_ context.Context, id string, data []byte) error {
	switch id {
	case "stopped":
		return v1.ErrNotRunning
	case "away":
		return fmt.Errorf("%w: dial unix /secret.sock", v1.ErrEngineUnavailable)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, id+" "+string(data))
	return nil
}

func (c *console) Resize(ctx context.Context, id string, columns, rows uint) error {
	return c.Send(ctx, id, fmt.Appendf(nil, "%dx%d", columns, rows))
}

func (c *console) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.sent...)
}

func (c *console) Stats(_ context.Context, id string) (v1.Stats, error) {
	if id == "stopped" {
		return v1.Stats{}, v1.ErrNotRunning
	}
	return v1.Stats{CPUUsage: 12.5, MemoryUsage: 1024}, nil
}

func (c *console) Samples(ctx context.Context, ids []string) map[string]v1.Stats {
	all := map[string]v1.Stats{}
	for _, id := range ids {
		if sample, err := c.Stats(ctx, id); err == nil {
			all[id] = sample
		}
	}
	return all
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	return newHarnessWith(t, func(*Deps) {})
}

func newHarnessWith(t *testing.T, change func(*Deps), more ...route) *harness {
	t.Helper()
	db, err := store.Open("", store.Options{})
	require.NoError(t, err)
	h := &harness{t: t, store: db, registry: prometheus.NewRegistry(), console: &console{}, client: &http.Client{Timeout: 3 * time.Minute}}
	config := v1.Defaults()
	config.Authorization.Token = adminToken
	config.Storage.DataPath = "/data"
	config.Reconcile.CreateWait = 0
	config.Complete()
	config.Kubernetes.Claims = map[string]v1.VolumeClaim{"fast": {Claim: "fast"}}
	h.settings = &settings{config: config}
	h.hub = stream.New(t.TempDir(), stream.Options{})
	deps := Deps{Page: ui.New, Store: db, Settings: h.settings, Hub: h.hub, Console: h.console, Stats: h.console, Archives: noArchives{},
		Engine: func() EngineHealth { return EngineHealth{Reachable: true} }, Ready: func() []string { return nil },
		Registerer: h.registry, Gatherer: h.registry, WrongTokens: limit.NewRate(limit.WrongTokens()), Log: slog.New(slog.DiscardHandler), Version: "1.2.3",
		Node: func() v1.Node {
			return v1.Node{Node: "host-1", Version: "1.2.3", CPUs: 2, Engine: v1.NodeEngine{Name: v1.EngineDocker, Lacks: []string{}, Machines: []v1.EngineMachine{{Name: "n1"}, {Name: "n2"}}}, Features: v1.Defaults().Features()}
		}}
	change(&deps)
	h.hub = deps.Hub
	h.server = newServer(deps, more...)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h.base = "http://" + ln.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- h.server.Listen(ln) }()
	h.controllers(t)
	t.Cleanup(func() {
		h.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, h.server.Shutdown(ctx))
		require.NoError(t, <-ended)
		h.hub.Close()
		require.NoError(t, db.Close())
	})
	return h
}

// controllers creates the directories of volumes, and feeds the hub with transitions.
func (h *harness) controllers(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		_ = store.Volumes.Source(h.store, store.SpecChanged)(ctx, func(id string) {
			_ = h.store.Update(func(tx *store.Tx) error {
				return store.Volumes.SetStatus(tx, id, func(s *v1.VolumeStatus) { s.Created = true })
			})
		})
	})
	all.Go(func() {
		for e, err := range h.store.Events(ctx, 0) {
			if err == nil {
				h.hub.Event(e)
			}
		}
	})
	t.Cleanup(func() { cancel(); all.Wait() })
}

// request is a request. Zero fields have the values of a valid one.
type request struct {
	method, path string
	token        string // "-": none
	accept       string // "-": none
	body         string
	header       http.Header
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	raw    string
	json   map[string]any
}

func (h *harness) do(r request) answer {
	h.t.Helper()
	req, err := http.NewRequest(r.method, h.base+r.path, strings.NewReader(r.body))
	require.NoError(h.t, err)
	switch r.token {
	case "":
		req.Header.Set("Authorization", "Bearer "+adminToken)
	case "-":
	default:
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	switch r.accept {
	case "":
		req.Header.Set("Accept", "Application/vnd.berthv1+json")
	case "-":
	default:
		req.Header.Set("Accept", r.accept)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	resp, err := h.client.Do(req)
	require.NoError(h.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(h.t, err)
	a := answer{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	if bytes.HasPrefix(raw, []byte("{")) && len(raw) < 1<<20 {
		require.NoError(h.t, json.Unmarshal(raw, &a.json), a.raw)
	}
	if r.path != "/panic" && len(raw) < 1<<20 { // a larger one takes the checker half a minute
		openapitest.Check(h.t, req, resp, raw)
	}
	require.NotEmpty(h.t, resp.Header.Get("X-Request-Id"))
	if a.status >= 400 {
		require.Len(h.t, a.json, 1, a.raw)
		require.NotEmpty(h.t, a.json["error"], a.raw)
		require.NotEmpty(h.t, resp.Header.Get("X-Error-Code"))
	}
	return a
}

func (h *harness) call(method, path string, body any) answer {
	h.t.Helper()
	text := ""
	if body != nil {
		b, err := json.Marshal(body)
		require.NoError(h.t, err)
		text = string(b)
	}
	return h.do(request{method: method, path: path, body: text})
}

// must calls an endpoint and requires success.
func (h *harness) must(method, path string, body any) answer {
	h.t.Helper()
	a := h.call(method, path, body)
	require.Less(h.t, a.status, 300, a.raw)
	return a
}

// refuse calls an endpoint and requires a status and an error text.
func (h *harness) refuse(status int, text, method, path string, body any) {
	h.t.Helper()
	a := h.call(method, path, body)
	require.Equal(h.t, fmt.Sprint(status, " ", text), fmt.Sprint(a.status, " ", a.json["error"]), "%s %s", method, path)
}

type object = map[string]any

func (h *harness) volume() string {
	return h.must("POST", "/volumes", nil).json["volume_id"].(string)
}

func (h *harness) ports(list ...int) {
	for _, port := range list {
		h.must("POST", "/network/ports", object{"ip": "127.0.0.1", "port": port, "protocol": "tcp"})
	}
}

func binding(port int) object { return object{"ip": "127.0.0.1", "port": port, "protocol": "tcp"} }

func (h *harness) container(id, volume string, ports ...int) {
	list := []object{}
	for _, port := range ports {
		list = append(list, binding(port))
	}
	h.must("POST", "/containers", object{"internal_id": id, "image": "busybox:1", "volume_id": volume, "ports": list})
}

// phase stores a phase as the controller of a container does.
func (h *harness) phase(id string, phase v1.Phase) {
	h.t.Helper()
	require.NoError(h.t, h.store.Update(func(tx *store.Tx) error {
		o, err := intent.FindContainer(tx, id)
		if err != nil {
			return err
		}
		e := tx.Emit(v1.Event{Container: id, Event: v1.EventState, Data: string(phase)})
		return store.Containers.SetStatus(tx, id, func(s *v1.ContainerStatus) {
			s.Phase, s.Seq, s.Since = phase, e.Seq, e.Time
			s.ObservedInstall = o.Spec.InstallGeneration
		})
	}))
}

// print appends lines as the pump of a console does.
func (h *harness) print(id, role string, texts ...string) {
	h.t.Helper()
	_, err := h.hub.Begin(id, role, "engine-id")
	require.NoError(h.t, err)
	var lines []v1.Line
	for _, text := range texts {
		lines = append(lines, v1.Line{Time: time.Now(), Data: []byte(text)})
	}
	require.NoError(h.t, h.hub.Append(id, role, lines))
	require.NoError(h.t, h.hub.Finish(id, role))
}

func (h *harness) storeNow() (now time.Time) {
	now = h.store.Read().Now()
	return now.Add(-time.Hour)
}

// refuseStore makes every later update fail: the store is closed.
func (h *harness) refuseStore() { require.NoError(h.t, h.store.Close()) }

// purge removes a container as the controller does at the end of a deletion.
func (h *harness) purge(id string) {
	h.t.Helper()
	require.NoError(h.t, h.store.Update(func(tx *store.Tx) error { return store.Containers.Purge(tx, id) }))
}
