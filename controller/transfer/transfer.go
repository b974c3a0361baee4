package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/jobs"
	"berth/store"
)

// Destination is another node.
type Destination interface {
	Announce(ctx context.Context, r v1.ArrivalRequest) (v1.ArrivalView, error)
	Tree(ctx context.Context, id string) (io.ReadCloser, error)
	Send(ctx context.Context, id string, content io.Reader) error
	SendBackup(ctx context.Context, id, backup string, offset int64, archive io.Reader) error
	Commit(ctx context.Context, id string, r v1.CommitRequest) (v1.ArrivalView, error)
	Cancel(ctx context.Context, id string) (v1.ArrivalView, error)
	Close()
}

// Volumes reads volumes; see package volume.
type Volumes interface {
	Flush(ctx context.Context, id string) error
	AwaitChanges(ctx context.Context, id string) error
	Scan(ctx context.Context, id string) (v1.Usage, error)
	Send(ctx context.Context, id string, listing io.Reader, w io.Writer, opt v1.SendOptions) (v1.Sent, error)
}

// Archives are those of backups that lie here.
type Archives interface {
	// Send writes an archive to w from offset on, as volumes are sent. The error has the code v1.BackupNotFound if there is none,
	// and v1.InvalidArchive if it has another size than the backup.
	Send(ctx context.Context, b v1.ArrivalBackup, offset int64, w io.Writer) error
	// Delete removes an archive, and what is left of one that was being written.
	Delete(ctx context.Context, key string) error
}

// Intent are the functions of the API that change desired state in a transaction.
type Intent struct {
	Reserve      func(tx *store.Tx, t v1.Transfer) error
	Release      func(tx *store.Tx, t v1.Transfer) error
	Complete     func(tx *store.Tx, t v1.Transfer) error
	Announce     func(tx *store.Tx, t v1.Transfer) (v1.ArrivalRequest, error)
	Runs         func(tx *store.Tx, t v1.Transfer) bool // whether the container is to run
	ForgetToken  func(tx *store.Tx, id string) error
	DeleteVolume func(s store.Writer, t v1.Transfer) error
	DeleteMoved  func(s store.Writer, t v1.Transfer) error     // the backups that went with it
	Movable      func(tx *store.Tx, t v1.Transfer) []v1.Backup // the backups that can go with it
}

// Images has the images of arrivals pulled.
type Images interface {
	// Pull reports whether the image of an arrival is on the host, or returns why it can never be. Otherwise it is
	// being pulled; err is of an attempt that is repeated.
	Pull(ctx context.Context, arrival string, c v1.ContainerSpec) (present bool, refused, err error)

	// Forget ends the request of an arrival.
	Forget(arrival string)

	// Source is a controller.Source of the arrivals whose pull is done.
	Source(ctx context.Context, notify func(arrival string)) error
}

// Options are what the controllers need.
type Options struct {
	Store    *store.Store
	Volumes  Volumes
	Intent   Intent
	Connect  func(t v1.Transfer) (Destination, error)
	Busy     func(ctx context.Context, volume string) (string, error) // the container that the engine runs with a volume
	Images   Images
	Archives Archives
	Throttle controller.Throttle // of all transfers together
	Spool    string              // directory of listings while they are compared
	Jobs     *Jobs
	Resync   time.Duration
	BackOff  controller.BackOff
	Metrics  *Metrics
	Loops    *controller.Metrics
	Log      *slog.Logger
}

// Jobs are the jobs of transfers.
type Jobs struct {
	copies *jobs.Jobs[report] // while the container runs
	calls  *jobs.Jobs[report] // all others: nobody waits for a permit while its container is stopped
	log    *slog.Logger
}

const (
	maxCalls = 64 // jobs besides copies at once
	workers  = 4
)

// NewJobs returns the jobs; as many copy at once as outgoing returns.
func NewJobs(outgoing func() int, log *slog.Logger) *Jobs {
	calls := func() int { return maxCalls }
	return &Jobs{
		log:    log,
		copies: jobs.New[report](jobs.Options{Name: "copy of a transfer", Limit: outgoing, Log: log}),
		calls:  jobs.New[report](jobs.Options{Name: "call of a transfer", Limit: calls, PerKey: maxCalls, Log: log}),
	}
}

// Run runs jobs until ctx ends.
func (j *Jobs) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { _ = controller.Persist(ctx, j.log, "jobs", j.copies.Run) })
	parts.Go(func() { _ = controller.Persist(ctx, j.log, "jobs", j.calls.Run) })
	parts.Wait()
	return nil
}

// report is the progress and the result of a job.
type report struct {
	read    int64             // bytes of files
	sent    int64             // bytes that were sent
	arrived int64             // see v1.Sent
	left    int64             // see v1.Sent
	digest  string            // of the tree that the destination has
	cancels uint64            // of the spec, that the destination was asked for
	state   v1.ArrivalState   // that the destination has answered
	ports   []v1.TransferPort // that it has chosen
	total   int64             // bytes of the volume and of archives that were announced
	backups []string          // whose archives the destination has
}

type job = jobs.Job[report]

type reconciler struct{ Options }

// Loops returns the controllers of transfers and of arrivals.
func Loops(o Options) []*controller.Loop {
	every := func(list func() ([]string, error)) controller.Source { return controller.Every(o.Resync, list) }
	return []*controller.Loop{
		{Name: "transfer", Reconciler: &reconciler{o}, Workers: workers, BackOff: o.BackOff, Log: o.Log, Metrics: o.Loops,
			DesiredState: []controller.Source{store.Transfers.Source(o.Store, store.SpecChanged)},
			Signals:      []controller.Source{o.Jobs.copies.Source, o.Jobs.calls.Source, every(store.Transfers.Lister(o.Store))}},
		{Name: "arrival", Reconciler: &arrivals{o}, Workers: 1, BackOff: o.BackOff, Log: o.Log, Metrics: o.Loops,
			DesiredState: []controller.Source{store.Arrivals.Source(o.Store, store.SpecChanged)},
			Signals:      []controller.Source{o.Images.Source, every(store.Arrivals.Lister(o.Store))}},
	}
}

// maxSteps bounds the steps of one reconcile.
const maxSteps = 20

// Reconcile takes the steps of the transfer with this id until one has to wait.
func (r *reconciler) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	for range maxSteps {
		t, err := store.Transfers.Get(r.Store.Read(), id)
		if errors.Is(err, store.ErrNotFound) {
			return controller.Result{}, nil
		}
		if err != nil {
			return controller.Result{}, err
		}
		res, err := r.step(ctx, t)
		if err != nil || res != (controller.Result{}) {
			return res, err
		}
		if now, err := store.Transfers.Get(r.Store.Read(), id); err != nil || now.Meta.Revision == t.Meta.Revision {
			if errors.Is(err, store.ErrNotFound) {
				err = nil
			}
			return controller.Result{}, err
		}
	}
	return controller.Result{}, fmt.Errorf("transfer %s: no progress in %d steps", id, maxSteps)
}

// The times of a transfer.
const (
	progressPeriod = 2 * time.Second
	stopPoll       = 250 * time.Millisecond
	connection     = 5 * time.Minute // in which one request of content begins files and parts: proxies cut long ones

	leastAttempts  = 5
	patience       = 30 * time.Minute // without progress, while the container runs
	finishPatience = 3 * time.Minute  // while it is stopped
	firstDelay     = 2 * time.Second
	mostDelay      = 5 * time.Minute
	mostStopDelay  = 20 * time.Second // while the container is stopped
	removePatience = 24 * time.Hour   // for the destination to remove what has arrived, and for the volume to be free
	volumePoll     = 2 * time.Second
)

// step takes the next step of a transfer. The zero Result means that another one may follow.
func (r *reconciler) step(ctx context.Context, t v1.Transfer) (controller.Result, error) {
	state, tx := v1.TransferStateOf(t), r.Store.Read()
	if state.Finished() {
		return r.afterwards(t)
	}
	if t.Status.State == "" {
		return controller.Result{}, r.record(t, func(s *v1.TransferStatus, now time.Time) { s.State, s.StartedAt = v1.TransferPending, &now })
	}
	if t.Spec.Cancels > 0 && state != v1.TransferHandingOver {
		return r.cancelled(t)
	}
	if wait := t.Status.RetryAt.Sub(tx.Now()); wait > 0 && wait <= mostDelay && t.Spec.Cancels == t.Status.Unanswered {
		return controller.Result{RequeueAfter: wait}, nil
	}
	if j := r.jobsOf(state).Get(t.Meta.ID); j.State != jobs.None {
		return r.collect(t, j)
	}
	switch state {
	case v1.TransferStopping:
		return r.stop(ctx, t)
	case v1.TransferHandingOver:
		return r.begin(t, r.handOver(t))
	case v1.TransferPending:
		return r.begin(t, r.announce(t))
	case v1.TransferCopying:
		return r.begin(t, r.copy(t))
	}
	return r.begin(t, r.finish(t))
}

// jobsOf returns the jobs of a state.
func (r *reconciler) jobsOf(s v1.TransferState) *jobs.Jobs[report] {
	if s == v1.TransferCopying {
		return r.Jobs.copies
	}
	return r.Jobs.calls
}

// begin begins the job of the state of a transfer.
func (r *reconciler) begin(t v1.Transfer, work func(context.Context, Destination, func(report)) error) (controller.Result, error) {
	started, err := r.jobsOf(v1.TransferStateOf(t)).Start(jobs.Request[report]{ID: t.Meta.ID, Key: t.Meta.ID,
		Work: func(ctx context.Context, notify func(report)) error {
			to, err := r.Connect(t)
			if err != nil {
				return err
			}
			defer to.Close()
			return work(ctx, to, notify)
		}})
	if started {
		return controller.Result{Waiting: true, RequeueAfter: progressPeriod}, err
	}
	return controller.Result{Waiting: true, RequeueAfter: jobs.AskAgain}, err
}

// record stores a changed status.
func (r *reconciler) record(t v1.Transfer, change func(s *v1.TransferStatus, now time.Time)) error {
	return r.recordWith(t, nil, change)
}

// recordWith is record with a change of other objects before, which may refuse it.
func (r *reconciler) recordWith(t v1.Transfer, also func(tx *store.Tx) error, change func(s *v1.TransferStatus, now time.Time)) error {
	var state v1.TransferState
	err := r.Store.MustUpdate(func(tx *store.Tx) error {
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		return store.Transfers.SetStatus(tx, t.Meta.ID, func(s *v1.TransferStatus) {
			before := s.State
			change(s, tx.Now())
			s.Message = v1.MessageText(s.Message)
			if s.State != before {
				state = s.State
				s.RetryAt, s.Failures, s.FailedAt = time.Time{}, 0, time.Time{}
				if now := tx.Now(); s.State.Finished() {
					s.FinishedAt = &now
				}
			}
		})
	})
	if err == nil && state != "" {
		r.Metrics.entered(state)
		if state.Finished() {
			r.Log.Info("a transfer has ended", "transfer", t.Meta.ID, "container", t.Spec.Container, "state", state)
		}
	}
	return err
}

// cancelled ends a transfer before its hand-over, once its job has ended.
func (r *reconciler) cancelled(t v1.Transfer) (controller.Result, error) {
	id, all := t.Meta.ID, r.jobsOf(v1.TransferStateOf(t))
	if all.Get(id).State == jobs.Running {
		all.Cancel(id)
		return controller.Result{Waiting: true, RequeueAfter: progressPeriod}, nil
	}
	all.Forget(id)
	return controller.Result{}, r.giveBack(t, v1.TransferCancelled, "Cancelled")
}

// giveBack ends a transfer: the container stays here, and runs if it is to run.
func (r *reconciler) giveBack(t v1.Transfer, state v1.TransferState, message string) error {
	end := func(tx *store.Tx) error { return r.Intent.Release(tx, t) }
	return r.recordWith(t, end, func(s *v1.TransferStatus, _ time.Time) {
		s.State, s.Message, s.Remove = state, message, true
	})
}

// stop waits until nothing runs with the volume, which is reserved.
func (r *reconciler) stop(ctx context.Context, t v1.Transfer) (controller.Result, error) {
	tx := r.Store.Read()
	o, err := store.Containers.Get(tx, t.Spec.Container)
	if err != nil {
		return controller.Result{}, r.giveBack(t, v1.TransferFailed, "The source: the container cannot be read")
	}
	if o.Status.Phase.Active() {
		return controller.Result{RequeueAfter: stopPoll}, nil
	}
	if by, err := r.Busy(ctx, t.Spec.VolumeID); err != nil || by != "" { // the engine decides
		return controller.Result{RequeueAfter: stopPoll}, err
	}
	return controller.Result{}, r.record(t, func(s *v1.TransferStatus, _ time.Time) { s.State = v1.TransferFinishing })
}

// collect records the progress or the result of a job.
func (r *reconciler) collect(t v1.Transfer, j job) (controller.Result, error) {
	if j.State == jobs.Running {
		if p := t.Status.Progress; j.Value.read > p.Bytes {
			err := r.record(t, func(s *v1.TransferStatus, _ time.Time) { s.Progress.Bytes = j.Value.read })
			return controller.Result{Waiting: true, RequeueAfter: progressPeriod}, err
		}
		return controller.Result{Waiting: true, RequeueAfter: progressPeriod}, nil
	}
	state := v1.TransferStateOf(t)
	defer r.jobsOf(state).Forget(t.Meta.ID)
	switch {
	case state == v1.TransferHandingOver:
		return r.collectHandOver(t, j)
	case j.Value.state == v1.ArrivalCommitted: // a store that was restored from an older state
		return controller.Result{}, r.complete(t)
	case j.Value.state == v1.ArrivalCancelled:
		return controller.Result{}, r.giveBack(t, v1.TransferCancelled, "Cancelled by the destination")
	case j.Err != nil:
		return controller.Result{}, r.failed(t, j)
	}
	switch state {
	case v1.TransferPending:
		return controller.Result{}, r.record(t, func(s *v1.TransferStatus, _ time.Time) {
			s.Ports, s.Progress.Total = j.Value.ports, j.Value.total
			began := time.Now() // the clock that the kernel has too
			s.State, s.Message, s.Since, s.Began, s.Progress.Round = v1.TransferCopying, "", began.Add(-clockGrain), began, 1
		})
	case v1.TransferCopying:
		return controller.Result{}, r.collectRound(t, j.Value)
	}
	return controller.Result{}, r.record(t, func(s *v1.TransferStatus, _ time.Time) {
		s.Ports = j.Value.ports
		s.State, s.Message, s.Digest = v1.TransferHandingOver, "", j.Value.digest
	})
}

// When copying ends.
const (
	smallRound = 64 << 20
	shortRound = 10 * time.Second
	mostRounds = 4
	clockGrain = 2 * time.Second // the kernel's times of changes are a little behind
)

// collectRound records a complete round. The next one begins, or the container is stopped.
func (r *reconciler) collectRound(t v1.Transfer, j report) error {
	small := j.sent < smallRound && t.Status.Failures == 0 // a failed attempt has sent some of it
	short := time.Since(t.Status.Began) < shortRound
	last := (small || short) && j.left < smallRound || t.Status.Progress.Round >= mostRounds
	var movable []string
	reserve := func(tx *store.Tx) error {
		movable = nil
		for _, b := range r.Intent.Movable(tx, t) { // as they are: the reservation keeps them so
			if slices.Contains(j.backups, b.Meta.ID) {
				movable = append(movable, b.Meta.ID)
			}
		}
		return r.Intent.Reserve(tx, t)
	}
	if !last {
		reserve = nil
	}
	err := r.recordWith(t, reserve, func(s *v1.TransferStatus, _ time.Time) {
		if last {
			s.Backups = movable
		}
		s.Since, s.Began, s.Arrived = t.Status.Began.Add(-clockGrain), time.Now(), 0
		s.Message, s.Progress.Bytes = "", 0
		s.Failures, s.FailedAt = 0, time.Time{}
		s.Progress.Round++
		if last {
			s.State = v1.TransferStopping
		}
	})
	var refused *v1.Error
	if errors.As(err, &refused) {
		return r.giveBack(t, v1.TransferFailed, "The source: "+refused.Message)
	}
	return err
}

// failed records an attempt that failed: the next one comes later, or the transfer has failed.
func (r *reconciler) failed(t v1.Transfer, j job) error {
	stopped := v1.TransferStateOf(t) == v1.TransferFinishing
	limit, most := patience, mostDelay
	if stopped {
		limit, most = finishPatience, mostStopDelay
	}
	now, st := r.Store.Read().Now(), t.Status
	if arrived := j.Value.arrived; arrived > st.Arrived && !stopped {
		st.Arrived, st.Failures, st.FailedAt = arrived, 0, time.Time{}
	}
	if st.FailedAt.IsZero() {
		st.FailedAt = now
	}
	st.Failures++
	text, final := explain(j.Err)
	if final || st.Failures >= leastAttempts && now.Sub(st.FailedAt) >= limit {
		return r.giveBack(t, v1.TransferFailed, text)
	}
	return r.record(t, func(s *v1.TransferStatus, now time.Time) {
		s.Arrived, s.Failures, s.FailedAt = st.Arrived, st.Failures, st.FailedAt
		s.Message, s.RetryAt = text, now.Add(delay(st.Failures, most))
	})
}

// delay returns how long to wait after so many failures.
func delay(failures int, most time.Duration) time.Duration {
	return min(firstDelay<<min(failures-1, 16), most)
}

// collectHandOver acts on what the destination has answered.
func (r *reconciler) collectHandOver(t v1.Transfer, j job) (controller.Result, error) {
	switch {
	case j.Value.state == v1.ArrivalCommitted:
		return controller.Result{}, r.complete(t)
	case j.Value.state == v1.ArrivalCancelled && t.Spec.Cancels > 0:
		return controller.Result{}, r.giveBack(t, v1.TransferCancelled, "Cancelled")
	case j.Value.state == v1.ArrivalCancelled:
		text := "Cancelled by the destination"
		if j.Err != nil {
			text, _ = explain(j.Err)
		}
		return controller.Result{}, r.giveBack(t, v1.TransferFailed, text)
	case j.Value.cancels > 0 && t.Spec.Gone:
		return controller.Result{}, r.giveBack(t, v1.TransferCancelled,
			"Cancelled without an answer of the destination, which an operator has declared gone")
	}
	text, _ := explain(j.Err)
	return controller.Result{}, r.record(t, func(s *v1.TransferStatus, now time.Time) {
		if s.FailedAt.IsZero() {
			s.FailedAt = now
		}
		s.Failures++
		s.Unanswered = j.Value.cancels
		s.Message = "The destination has not answered whether it has the container: " + text
		s.RetryAt = now.Add(delay(s.Failures, mostStopDelay))
	})
}

// complete records that the destination has the container, which is deleted here.
func (r *reconciler) complete(t v1.Transfer) error {
	var kept []string
	moved := func(tx *store.Tx) error {
		kept = nil
		for _, id := range store.Backups.IDsBy(tx, t.Spec.VolumeID) {
			if t.Spec.Backups && !slices.Contains(t.Status.Backups, id) {
				kept = append(kept, id)
			}
		}
		return r.Intent.Complete(tx, t)
	}
	return r.recordWith(t, moved, func(s *v1.TransferStatus, now time.Time) {
		until := now.Add(time.Duration(*t.Spec.Keep))
		s.BackupsKept = kept
		s.State, s.Message, s.VolumeUntil = v1.TransferCompleted, "", &until
	})
}

// afterwards has the destination remove what has arrived, deletes the volume of a completed transfer and the backups that went with
// it, and removes old records.
func (r *reconciler) afterwards(t v1.Transfer) (controller.Result, error) {
	id := t.Meta.ID
	if t.Status.Remove {
		return r.removeArrival(t)
	}
	if t.Spec.Token != "" {
		return controller.Result{}, r.Store.MustUpdate(func(tx *store.Tx) error { return r.Intent.ForgetToken(tx, id) })
	}
	now := r.Store.AgeTime()
	if until := t.Status.VolumeUntil; until != nil {
		if wait := until.Sub(now); wait > 0 {
			return controller.Result{RequeueAfter: wait}, nil
		}
		err := r.Intent.DeleteMoved(r.Store, t)
		if err == nil {
			err = r.Intent.DeleteVolume(r.Store, t)
		}
		inUse := errors.Is(err, &v1.Error{Code: v1.VolumeInUse}) || errors.Is(err, &v1.Error{Code: v1.BackupInUse})
		if inUse && now.Sub(*until) < removePatience { // the container is being removed, or a restore reads a backup
			return controller.Result{RequeueAfter: volumePoll}, nil
		}
		var refused *v1.Error // it is gone, or another container uses it
		if err != nil && !errors.As(err, &refused) {
			return controller.Result{}, err
		}
		return controller.Result{}, r.record(t, func(s *v1.TransferStatus, _ time.Time) { s.VolumeUntil = nil })
	}
	if wait := v1.TransferRetention - now.Sub(*t.Status.FinishedAt); wait > 0 {
		return controller.Result{RequeueAfter: wait}, nil
	}
	return controller.Result{}, r.Store.Update(func(tx *store.Tx) error { return store.Transfers.Purge(tx, id) })
}

// removeArrival has the destination remove what has arrived.
func (r *reconciler) removeArrival(t v1.Transfer) (controller.Result, error) {
	id := t.Meta.ID
	if wait := t.Status.RetryAt.Sub(r.Store.Read().Now()); wait > 0 && wait <= mostDelay {
		return controller.Result{RequeueAfter: wait}, nil
	}
	j := r.Jobs.calls.Get(id)
	switch j.State {
	case jobs.None:
		return r.begin(t, func(ctx context.Context, to Destination, notify func(report)) error {
			a, err := to.Cancel(ctx, id)
			notify(report{state: a.State})
			return err
		})
	case jobs.Running:
		return controller.Result{Waiting: true, RequeueAfter: progressPeriod}, nil
	}
	defer r.Jobs.calls.Forget(id)
	if _, final := explain(j.Err); j.Err == nil || final || r.Store.AgeTime().Sub(*t.Status.FinishedAt) > removePatience {
		if j.Value.state == v1.ArrivalCommitted {
			r.Log.Error("a transfer was ended without the destination, which has the container: both nodes have it; delete it on one of them",
				"transfer", id, "container", t.Spec.Container, "url", t.Spec.URL)
		}
		return controller.Result{}, r.record(t, func(s *v1.TransferStatus, _ time.Time) {
			s.Remove, s.RetryAt, s.Failures = false, time.Time{}, 0
			if j.Value.state == v1.ArrivalCommitted {
				s.Message = "The destination has the container as well: delete it on one of the nodes"
			}
		})
	}
	return controller.Result{}, r.record(t, func(s *v1.TransferStatus, now time.Time) {
		s.Failures++
		s.RetryAt = now.Add(delay(s.Failures, mostDelay))
	})
}
