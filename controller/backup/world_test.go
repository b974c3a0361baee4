package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// target is a Target in memory.
type target struct {
	mu      sync.Mutex
	stored  map[string][]byte
	parts   map[string]bool // what interrupted Puts left
	put     error           // of Put, after everything was written
	lost    int             // bytes that Put does not store
	delete  error
	hold    chan struct{} // Put waits until it is closed; nil: it does not wait
	read    chan struct{} // Open waits for one; nil: it does not wait
	dead    chan struct{} // Delete waits until it is closed; nil: it does not wait
	begun   []string      // keys of Puts in their order
	deletes int
}

func (x *target) set(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
}

func (x *target) Put(ctx context.Context, key string, write func(ctx context.Context, w io.Writer) error) (int64, error) {
	x.mu.Lock()
	x.parts[key] = true
	x.begun = append(x.begun, key)
	hold := x.hold
	x.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return 0, ctx.Err() // the part stays, as after a crash
		}
	}
	var b bytes.Buffer
	err := write(ctx, &b)
	x.mu.Lock()
	defer x.mu.Unlock()
	if err = errors.Join(err, x.put); err != nil {
		return 0, err
	}
	x.stored[key] = b.Bytes()[:b.Len()-x.lost]
	delete(x.parts, key)
	return int64(len(x.stored[key])), nil
}

func (x *target) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, int64, error) {
	x.mu.Lock()
	read := x.read
	x.mu.Unlock()
	if read != nil {
		select {
		case <-read:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	b, there := x.stored[key]
	if !there {
		return nil, 0, errors.New("open /secret/path/" + key + ": no such file")
	}
	return io.NopCloser(bytes.NewReader(b[offset:])), int64(len(b)), nil
}

func (x *target) Delete(ctx context.Context, key string) error {
	x.mu.Lock()
	dead := x.dead
	x.mu.Unlock()
	if dead != nil {
		select {
		case <-dead:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.deletes++
	if x.delete != nil {
		return x.delete
	}
	delete(x.stored, key)
	delete(x.parts, key)
	return nil
}

func (x *target) Abort(context.Context, string) error { return nil }

func (x *target) leftover() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.parts) + len(x.stored)
}

// trees is Archives in memory: the archive of a volume is its content.
type trees struct {
	mu      sync.Mutex
	content map[string]string
	skipped []v1.Skipped // of each archive
	broken  bool         // each archive panics
}

func (x *trees) set(volume, content string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.content[volume] = content
}

func (x *trees) get(volume string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.content[volume]
}

func (x *trees) Snapshot(ctx context.Context, volume string, w io.Writer, opt v1.SnapshotOptions) (v1.Snapshot, error) {
	if x.broken {
		panic("broken tree")
	}
	text := x.get(volume)
	opt.Progress(1, int64(len(text)))
	if _, err := io.WriteString(w, text); err != nil {
		return v1.Snapshot{}, err
	}
	if err := opt.Written(int64(len(text))); err != nil {
		return v1.Snapshot{}, err
	}
	sum := sha256.Sum256([]byte(text))
	return v1.Snapshot{Size: int64(len(text)), Checksum: "sha256:" + hex.EncodeToString(sum[:]), Files: 1, Bytes: int64(len(text)), Skipped: x.skipped, SkippedTotal: int64(len(x.skipped))}, ctx.Err()
}

func (x *trees) Fits(string, v1.SnapshotArchive, v1.RestoreOptions) error { return nil }

func (x *trees) Restore(_ context.Context, volume string, r io.Reader, a v1.SnapshotArchive, opt v1.RestoreOptions) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(b); "sha256:"+hex.EncodeToString(sum[:]) != a.Checksum {
		return v1.Errorf(v1.InvalidArchive, "The archive is damaged")
	}
	x.set(volume, strings.Join(append([]string{string(b)}, opt.Paths...), " only "))
	return nil
}

// console is a Console in memory.
type console struct {
	mu      sync.Mutex
	running bool
	sent    []string
	fail    error // of Send
	silent  bool  // no line matches
}

func (x *console) Running(context.Context, string) (bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.running, nil
}

func (x *console) Send(_ context.Context, _, command string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fail == nil {
		x.sent = append(x.sent, command)
	}
	return x.fail
}

func (x *console) Await(ctx context.Context, _, _ string, _ time.Time) error {
	x.mu.Lock()
	silent := x.silent
	x.mu.Unlock()
	if silent {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (x *console) set(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
}

func (x *console) commands() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]string(nil), x.sent...)
}

// world is a store, a target, volumes and the loops of this package.
type world struct {
	t       *testing.T
	store   *store.Store
	target  *target
	s3      *target // nil: target
	trees   *trees
	console *console
	limit   int
	limits  v1.BackupsConfig
	revoked bool         // no token is valid
	busy    string       // the container that the engine runs with each volume
	full    error        // of Options.Free
	clock   atomic.Int64 // by which the host's clock is ahead, a time.Duration
	mu      sync.Mutex
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, limit: 1, limits: v1.Defaults().Backups, console: &console{running: true},
		target: &target{stored: map[string][]byte{}, parts: map[string]bool{}}, trees: &trees{content: map[string]string{}, skipped: []v1.Skipped{{Path: "log", Reason: v1.SkippedChanged}}}}
	s, err := store.Open("", store.Options{Now: func() time.Time { return time.Now().Add(time.Duration(w.clock.Load())) }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	w.store = s
	w.volume("v", "tree of v")
	return w
}

// live runs a test with a world whose loops run.
func live(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.run()()
		test(w)
	})
}

// run starts the daemon's part that this package is; stop ends it.
func (w *world) run() (stop func()) {
	jobs := NewJobs(func() int { return w.limit }, slog.New(slog.DiscardHandler))
	o := Options{Store: w.store, Archives: w.trees, Console: w.console, Jobs: jobs, Log: slog.New(slog.DiscardHandler),
		Targets: w.of, Limits: func() v1.BackupsConfig { w.mu.Lock(); defer w.mu.Unlock(); return w.limits },
		Free: func(v1.Target) error { w.mu.Lock(); defer w.mu.Unlock(); return w.full },
		Maker: func(*store.Tx, string, string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.revoked {
				return errors.New("revoked")
			}
			return nil
		},
		Busy: func(context.Context, string) (string, error) { w.mu.Lock(); defer w.mu.Unlock(); return w.busy, nil }}
	loops := Loops(o, Run{
		Resync:  func(list func() ([]string, error)) controller.Source { return controller.Every(time.Minute, list) },
		BackOff: controller.BackOff{Initial: time.Second, Max: time.Minute}, Metrics: controller.NewMetrics(prometheus.NewRegistry()),
	})
	ctx, cancel := context.WithCancel(w.t.Context())
	var parts sync.WaitGroup
	parts.Go(func() { _ = jobs.Run(ctx) })
	for _, l := range loops {
		parts.Go(func() { l.Run(ctx) })
	}
	synctest.Wait()
	return func() { cancel(); parts.Wait() }
}

func (w *world) of(t v1.Target) (Target, error) {
	if t == v1.TargetS3 && w.s3 != nil {
		return w.s3, nil
	}
	return w.target, nil
}

func (w *world) update(fn func(*store.Tx) error) {
	w.t.Helper()
	require.NoError(w.t, w.store.Update(fn))
	synctest.Wait()
}

func (w *world) volume(id, content string) {
	w.t.Helper()
	w.trees.set(id, content)
	require.NoError(w.t, w.store.Update(func(tx *store.Tx) error { return store.Volumes.Create(tx, id, v1.VolumeSpec{}) }))
}

func (w *world) backup(id string, change func(*v1.BackupSpec)) {
	w.t.Helper()
	spec := v1.BackupSpec{VolumeID: "v", BackupRequest: v1.BackupRequest{Target: v1.TargetLocal}}
	if change != nil {
		change(&spec)
	}
	w.update(func(tx *store.Tx) error { return store.Backups.Create(tx, id, spec) })
}

func (w *world) get(id string) (v1.Backup, error) {
	synctest.Wait()
	return store.Backups.Get(w.store.Read(), id)
}

// want returns a backup, which must have a state.
func (w *world) want(id string, state v1.JobState) v1.Backup {
	w.t.Helper()
	b, err := w.get(id)
	require.NoError(w.t, err)
	require.Equal(w.t, state, b.Status.State, b.Status.Message)
	return b
}

func (w *world) restore(id, backup, volume string) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		return store.BeginRestore(tx, id, v1.RestoreSpec{BackupID: backup, RestoreRequest: v1.RestoreRequest{VolumeID: volume, Mode: v1.RestoreReplace}})
	})
}

func (w *world) restored(id string, state v1.JobState) (o v1.Restore) {
	w.t.Helper()
	synctest.Wait()
	o, err := store.Restores.Get(w.store.Read(), id)
	require.NoError(w.t, err)
	require.Equal(w.t, state, o.Status.State, o.Status.Message)
	return o
}

// events returns the stored transitions of a backup or restore.
func (w *world) events(id string) (list []string) {
	w.t.Helper()
	all, err := store.ReadEvents(w.store.Read(), 0, 1000)
	for _, e := range all {
		if e.Restore == id || e.Restore == "" && e.Backup == id {
			list = append(list, e.Data)
		}
	}
	require.NoError(w.t, err)
	return list
}
