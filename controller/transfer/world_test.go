package transfer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

const transferID = "d0c7a1de-3f57-4c11-9a58-6d2b0f6b1c2e"

// world are two nodes: a store with a running container and the loops of this package, and a destination
// whose store is changed as its API does.
type world struct {
	t      *testing.T
	here   *store.Store
	there  *node
	volume string
	clock  atomic.Int64 // by which the clock of the source is ahead, a time.Duration

	metrics *prometheus.Registry
	stop    func()

	mu      sync.Mutex
	content string   // of the volume
	local   archives // of its backups
	busy    string   // see Options.Busy
	rounds  int      // sendings to which the volume was compared
	size    int64    // bytes that each sending counts
	arrived int64    // that each sending finds
	left    int64    // bytes that each sending leaves while the container runs
	sent    []v1.SendOptions
	takes   time.Duration // of each sending
	writes  bool          // the tenant writes during each sending while the container is not stopped
	reading error         // of the volume

	bandwidth atomic.Int64 // of all transfers; 0: no limit
}

// node is a destination. It answers as the API does.
type node struct {
	store *store.Store

	mu       sync.Mutex
	fail     map[string]error // by call, before it takes effect
	lose     map[string]error // by call, after it took effect
	content  string           // that has arrived
	archives archives
	parts    map[string]string // of archives that have not arrived as a whole, by backup
	requests []int64           // the offsets of requests that sent a part
	carries  int64             // bytes of an archive after which a request is cut; 0: none is
	bucket   map[string]int64  // sizes of archives in S3, by key
	sent     []string          // backups whose archives were read to the end
	image    error             // what pulling says
	incoming int
}

// archives are the local archives of a node, by key. It is safe for concurrent use.
type archives struct {
	sync.Map
	failing atomic.Pointer[error] // of each Send; nil: none
}

// Send writes an archive byte by byte. If its content begins with "slow", each byte takes the time of a connection.
func (a *archives) Send(_ context.Context, b v1.ArrivalBackup, offset int64, w io.Writer) error {
	text, found := a.Load(v1.ArchiveKey(b.BackupID))
	if !found {
		return v1.ErrBackupNotFound
	}
	if failing := a.failing.Load(); failing != nil {
		return *failing
	}
	for _, c := range text.(string)[offset:] {
		if _, err := io.WriteString(w, string(c)); err != nil {
			return err
		}
		if strings.HasPrefix(text.(string), "slow") {
			time.Sleep(connection + time.Second)
		}
	}
	return nil
}

func (a *archives) Delete(_ context.Context, key string) error { a.Map.Delete(key); return nil }

func (a *archives) keys() (keys []string) {
	a.Range(func(key, _ any) bool { keys = append(keys, key.(string)); return true })
	slices.Sort(keys)
	return keys
}

// refusal is an answer of the destination with a status.
type refusal struct {
	error
	status int
}

func (r refusal) HTTPStatus() int { return r.status }

func (r refusal) Unwrap() error { return r.error }

func (n *node) call(name string, do func() error) error {
	n.mu.Lock()
	fail, lose := n.fail[name], n.lose[name]
	n.mu.Unlock()
	if fail != nil {
		return fail
	}
	err := do()
	var known *v1.Error
	if errors.As(err, &known) {
		status := 409
		if errors.Is(err, v1.ErrArrivalNotFound) {
			status = 404
		}
		err = refusal{err, status}
	}
	if lose != nil {
		return lose
	}
	return err
}

// set has a call fail, or no more.
func (n *node) set(name string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail[name] = err
}

// setLost has the answer of a call be lost, or no more.
func (n *node) setLost(name string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose[name] = err
}

func (n *node) view(id string) (v1.ArrivalView, error) {
	a, err := intent.FindArrival(n.store.Read(), id)
	v := v1.ViewOfArrival(a, func(string) bool { return true })
	for _, b := range a.Spec.Backups {
		if _, found := n.archives.Load(v1.ArchiveKey(b.BackupID)); found && a.Spec.Ended == "" {
			v.Backups = append(v.Backups, b.BackupID)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	v.Stored = map[string]int64{}
	for id, part := range n.parts {
		v.Stored[id] = int64(len(part))
	}
	return v, err
}

// clean plays the controller of arrivals.
func (n *node) clean(t *testing.T) {
	t.Helper()
	_, err := (&arrivals{Options{Store: n.store, Archives: &n.archives, Volumes: &world{}, Images: &images{present: true}}}).Reconcile(context.Background(), transferID)
	require.NoError(t, err)
}

func (n *node) SendBackup(_ context.Context, id, backup string, offset int64, archive io.Reader) error {
	return n.call("backup", func() error {
		if err := n.open(id); err != nil {
			return err
		}
		carries := int64(math.MaxInt64)
		if n.carries > 0 {
			carries = n.carries
		}
		part, failed := io.ReadAll(io.LimitReader(archive, carries))
		text, err := n.part(backup, offset, string(part))
		switch {
		case failed != nil || err != nil:
			return cmp.Or(failed, err)
		case int64(len(part)) == carries:
			return errCut
		}
		a, err := intent.FindArrival(n.store.Read(), id)
		if err != nil {
			return err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, b := range a.Spec.Backups {
			switch key := v1.ArchiveKey(backup); {
			case b.BackupID != backup:
			case b.Spec.Target == v1.TargetS3 && n.bucket[key] == b.Status.Size:
				return nil
			case b.Spec.Target == v1.TargetLocal && int64(len(text)) < b.Status.Size:
				return nil
			case b.Spec.Target == v1.TargetLocal && fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) == b.Status.Checksum:
				n.archives.Store(key, text)
				n.sent = append(n.sent, backup)
				delete(n.parts, backup)
				return nil
			case b.Spec.Target == v1.TargetLocal:
				return v1.Errorf(v1.InvalidArchive, "The archive is another one")
			}
		}
		return v1.ErrBackupNotFound
	})
}

// part stores a part of an archive, and returns what is stored.
func (n *node) part(backup string, offset int64, content string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requests = append(n.requests, offset)
	if before := int64(len(n.parts[backup])); offset != 0 && offset != before {
		return "", v1.Errorf(v1.Unavailable, "The stored part does not end at %d", offset)
	}
	n.parts[backup] = n.parts[backup][:offset] + content
	return n.parts[backup], nil
}

// pulled plays the controller of the images.
func (n *node) pulled(id string) error {
	return n.store.Update(func(tx *store.Tx) error {
		return store.Arrivals.SetStatus(tx, id, func(s *v1.ArrivalStatus) {
			if n.image != nil {
				s.Refused = n.image.Error()
				return
			}
			s.ImagePresent = true
		})
	})
}

func (n *node) Announce(_ context.Context, r v1.ArrivalRequest) (a v1.ArrivalView, err error) {
	err = n.call("announce", func() error {
		p := intent.ArrivalPolicy{Incoming: n.incoming}
		p.Backups = v1.Defaults().Backups
		if err := intent.PutArrival(n.store, p, r); err != nil {
			return err
		}
		if err := n.pulled(r.ArrivalID); err != nil {
			return err
		}
		a, err = n.view(r.ArrivalID)
		return err
	})
	return a, err
}

// open returns the refusal of a request that changes an arrival that has ended.
func (n *node) open(id string) error {
	a, err := n.view(id)
	if err == nil && a.State != v1.ArrivalReceiving {
		err = v1.Errorf(v1.Transferring, "Arrival is %s", a.State)
	}
	return err
}

func (n *node) Tree(_ context.Context, id string) (tree io.ReadCloser, err error) {
	err = n.call("tree", func() error {
		if err := n.open(id); err != nil {
			return err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		tree = io.NopCloser(strings.NewReader(n.content))
		return nil
	})
	return tree, err
}

func (n *node) Send(_ context.Context, id string, content io.Reader) error {
	return n.call("send", func() error {
		if err := n.open(id); err != nil {
			return err
		}
		text, err := io.ReadAll(content)
		if err != nil || len(text) == 0 {
			return err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.content = string(text)
		return nil
	})
}

func (n *node) Commit(_ context.Context, id string, r v1.CommitRequest) (a v1.ArrivalView, err error) {
	err = n.call("commit", func() error {
		n.mu.Lock()
		same := digestOf(n.content) == r.Digest
		n.mu.Unlock()
		if a, err = n.view(id); err != nil || a.State == v1.ArrivalCommitted || a.State == v1.ArrivalCancelled {
			return err
		}
		arrival, _ := intent.FindArrival(n.store.Read(), id)
		for _, b := range arrival.Spec.Backups {
			_, found := n.archives.Load(v1.ArchiveKey(b.BackupID))
			same = same && (found || b.Spec.Target == v1.TargetS3)
		}
		if !same {
			return v1.Errorf(v1.Precondition, "The files that have arrived are not those of the source")
		}
		err := intent.CommitArrival(n.store, id, r)
		a, _ = n.view(id)
		return err
	})
	return a, err
}

func (n *node) Cancel(_ context.Context, id string) (a v1.ArrivalView, err error) {
	err = n.call("cancel", func() error {
		if err := intent.CancelArrival(n.store, id); err != nil {
			return err
		}
		a, err = n.view(id)
		return err
	})
	return a, err
}

func (n *node) Close() {}

// has reports whether the destination would run the container.
func (n *node) has() bool {
	o, err := store.Containers.Get(n.store.Read(), "mc")
	return err == nil && !o.Meta.Deleted
}

func openStore(t *testing.T, now func() time.Time) *store.Store {
	s, err := store.Open("", store.Options{Now: now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// live runs a test with two nodes in a bubble.
func live(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, content: "1", size: 1}
		w.here = openStore(t, func() time.Time { return time.Now().Add(time.Duration(w.clock.Load())) })
		w.there = &node{store: openStore(t, time.Now), fail: map[string]error{}, lose: map[string]error{}, incoming: 4,
			bucket: map[string]int64{}, parts: map[string]string{}}
		var err error
		w.volume, err = intent.CreateVolume(w.here, v1.VolumeSpec{})
		require.NoError(t, err)
		for i, s := range []*store.Store{w.here, w.there.store} {
			var f v1.FieldErrors
			pool := intent.CheckPorts(&f, "10.0.0.1", []string{"1000", "1000-1001"}[i], "tcp")
			require.NoError(t, f.Err())
			require.NoError(t, intent.AddPorts(s, pool))
		}
		require.NoError(t, intent.CreateContainer(w.here, intent.Policy{}, "mc", v1.ContainerSpec{Image: "busybox:1", VolumeID: w.volume,
			Ports: []v1.Port{{IP: "10.0.0.1", Port: 1000, Protocol: "tcp"}}}))
		w.containers(func(c v1.Container, s *v1.ContainerStatus) {
			s.Phase, s.ObservedInstall = v1.Ready, c.Spec.InstallGeneration
		})
		require.NoError(t, intent.Power(w.here, "mc", intent.Start))
		w.containers(func(c v1.Container, s *v1.ContainerStatus) { s.Phase, s.ObservedRun = v1.Running, c.Spec.RunGeneration })
		w.run()
		defer func() { w.stop() }()
		test(w)
	})
}

// containers plays the controller of containers.
func (w *world) containers(change func(v1.Container, *v1.ContainerStatus)) {
	w.t.Helper()
	require.NoError(w.t, w.here.Update(func(tx *store.Tx) error {
		c, err := store.Containers.Get(tx, "mc")
		require.NoError(w.t, err)
		return store.Containers.SetStatus(tx, "mc", func(s *v1.ContainerStatus) { change(c, s) })
	}))
}

// exited plays the controller of containers after a stop.
func (w *world) exited() {
	w.t.Helper()
	w.containers(func(_ v1.Container, s *v1.ContainerStatus) { s.Phase = v1.Exit })
}

// run starts the daemon's part that this package is.
func (w *world) run() {
	log := slog.New(slog.DiscardHandler)
	w.metrics = prometheus.NewRegistry()
	all := NewJobs(func() int { return 2 }, log)
	loops := Loops(Options{Store: w.here, Volumes: w, Images: &images{}, Archives: &w.local, Jobs: all, Spool: w.t.TempDir(), Resync: time.Minute, Log: log,
		Connect: func(v1.Transfer) (Destination, error) { return w.there, nil },
		Busy: func(context.Context, string) (string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.busy, nil
		},
		Intent: Intent{Reserve: intent.ReserveTransfer, Release: intent.ReleaseTransfer, Complete: intent.CompleteTransfer,
			Announce: intent.AnnounceTransfer, Runs: intent.Runs, ForgetToken: intent.ForgetToken, DeleteVolume: intent.DeleteMovedVolume,
			DeleteMoved: intent.DeleteMoved, Movable: intent.Movable},
		Throttle: controller.NewThrottle(w.bandwidth.Load),
		BackOff:  controller.BackOff{Initial: time.Second, Max: time.Minute}, Metrics: Register(w.metrics, w.here),
		Loops: controller.NewMetrics(w.metrics)})
	ctx, cancel := context.WithCancel(w.t.Context())
	var parts sync.WaitGroup
	parts.Go(func() { _ = all.Run(ctx) })
	parts.Go(func() { loops[0].Run(ctx) })
	w.stop = func() { cancel(); parts.Wait() }
}

// restart ends the source, as a kill does, and starts it again.
func (w *world) restart() {
	w.stop()
	w.run()
}

func digestOf(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

func (w *world) Flush(context.Context, string) error        { return nil }
func (w *world) AwaitChanges(context.Context, string) error { return nil }

func (w *world) Scan(context.Context, string) (v1.Usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return v1.Usage{Bytes: w.size}, nil
}

func (w *world) Send(ctx context.Context, _ string, listing io.Reader, to io.Writer, opt v1.SendOptions) (sent v1.Sent, err error) {
	if !controller.Sleep(ctx, w.takes) {
		return sent, ctx.Err()
	}
	there, err := io.ReadAll(listing)
	if err != nil {
		return sent, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reading != nil {
		return sent, w.reading
	}
	w.rounds++
	w.sent = append(w.sent, opt)
	sent.Tree.Digest, sent.Arrived = digestOf(w.content), w.arrived
	if !opt.Until.IsZero() {
		sent.Left = w.left
	}
	if string(there) == w.content {
		return sent, nil
	}
	sent.Entries, sent.Bytes = 1, w.size
	_, err = io.WriteString(to, w.content)
	if w.writes && v1.TransferStateOf(w.get()) == v1.TransferCopying {
		w.content += "1"
	}
	return sent, err
}

func (w *world) get() v1.Transfer {
	o, err := store.Transfers.Get(w.here.Read(), transferID)
	require.NoError(w.t, err)
	return o
}

// move begins a transfer.
func (w *world) move(change func(r *v1.TransferRequest)) {
	w.t.Helper()
	var f v1.FieldErrors
	r := v1.TransferRequest{URL: "https://node2:8070", Token: "berth_0123456789abcdef0123456789abcdef"}
	if change != nil {
		change(&r)
	}
	intent.CheckTransfer(&f, &r)
	require.NoError(w.t, f.Err())
	require.NoError(w.t, intent.CreateTransfer(w.here, transferID, "mc", r))
}

// backup makes a completed backup of the volume; its archive has a content.
func (w *world) backup(target v1.Target, content string) (id string) {
	w.t.Helper()
	id = intent.NewID()
	require.NoError(w.t, w.here.Update(func(tx *store.Tx) error {
		spec := v1.BackupSpec{VolumeID: w.volume, BackupRequest: v1.BackupRequest{Name: content, Target: target}}
		if err := store.Backups.Create(tx, id, spec); err != nil {
			return err
		}
		now := tx.Now()
		return store.Backups.SetStatus(tx, id, func(s *v1.BackupStatus) {
			*s = v1.BackupStatus{State: v1.JobCompleted, FinishedAt: &now, Size: int64(len(content)), Unpacked: 10, Files: 1,
				Checksum: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content)))}
		})
	}))
	if target == v1.TargetLocal {
		w.local.Store(v1.ArchiveKey(id), content)
	}
	time.Sleep(time.Second) // each has its own time
	return id
}

// backups returns the ids of the backups of the volume that a store lists, sorted.
func (w *world) backups(s *store.Store) []string { return store.Backups.IDsBy(s.Read(), w.volume) }

// await lets time pass until the transfer has a state.
func (w *world) await(state v1.TransferState) v1.Transfer {
	w.t.Helper()
	for range 4000 {
		synctest.Wait()
		w.check()
		if t := w.get(); v1.TransferStateOf(t) == state {
			return t
		}
		time.Sleep(time.Second)
	}
	t := w.get()
	require.Equal(w.t, state, v1.TransferStateOf(t), t.Status.Message)
	return t
}

// mayRun reports whether the source would run the container.
func (w *world) mayRun() bool {
	tx := w.here.Read()
	o, err := store.Containers.Get(tx, "mc")
	return err == nil && !o.Meta.Deleted && !v1.IsTransfer(store.Restoring(tx, w.volume))
}

// check fails if both nodes would run the container.
func (w *world) check() {
	w.t.Helper()
	require.False(w.t, w.mayRun() && w.there.has(), "both nodes have the container")
}

// stays requires that the source has the container, and runs it as before.
func (w *world) stays(state v1.TransferState, message string) {
	w.t.Helper()
	t := w.await(state)
	require.Contains(w.t, t.Status.Message, message)
	require.True(w.t, w.mayRun())
	o, err := store.Containers.Get(w.here.Read(), "mc")
	require.NoError(w.t, err)
	require.Equal(w.t, v1.PowerOn, o.Spec.Power)
	require.False(w.t, w.there.has())
}

// taken makes a container of the destination.
func (w *world) taken(id string, ports ...int) {
	w.t.Helper()
	volume, err := intent.CreateVolume(w.there.store, v1.VolumeSpec{})
	require.NoError(w.t, err)
	spec := v1.ContainerSpec{Image: "busybox:1", VolumeID: volume}
	for _, p := range ports {
		spec.Ports = append(spec.Ports, v1.Port{IP: "10.0.0.1", Port: p, Protocol: "tcp"})
	}
	require.NoError(w.t, intent.CreateContainer(w.there.store, intent.Policy{}, id, spec))
}
