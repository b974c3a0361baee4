package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// arrivals holds the handlers of containers that arrive from other nodes.
type arrivals struct {
	store      *store.Store
	settings   Settings
	archives   Archives
	containers containers
	trees      Trees
	sessions   sessions
	dir        string        // for listings until they were sent
	spool      chan struct{} // has one listing at a time written
}

type arrivalsBody struct {
	Arrivals []v1.ArrivalView `json:"arrivals"`
}

func (s arrivals) policy() intent.ArrivalPolicy {
	c := s.settings.Current()
	return intent.ArrivalPolicy{Policy: s.containers.policy(), Incoming: c.Transfers.Incoming,
		SchedulePolicy: intent.SchedulePolicy{Backups: c.Backups, Has: s.archives.Has}}
}

func (s arrivals) view(tx *store.Tx, a v1.Arrival) v1.ArrivalView {
	return v1.ViewOfArrival(a, func(volume string) bool {
		v, err := store.Volumes.Get(tx, volume)
		return err == nil && v.Status.Created
	})
}

func (s arrivals) check(c *call, r *v1.ArrivalRequest) error {
	c.describe(func(a *v1.Audit) {
		a.Object, a.Container, a.Volume = r.ArrivalID, r.Container.InternalID, r.Container.VolumeID
	})
	intent.CheckArrival(&c.fieldErrors, s.policy(), r)
	return nil
}

func (s arrivals) put(c *call, r v1.ArrivalRequest) (v1.ArrivalView, error) {
	if err := s.archives.CheckSpace(r.Bytes, v1.ArchiveBytes(r.Backups, v1.TargetLocal)); err != nil && s.isNew(r.ArrivalID) {
		return v1.ArrivalView{}, err
	}
	if err := intent.PutArrival(c.writer(s.store), s.policy(), r); err != nil {
		return v1.ArrivalView{}, err
	}
	return s.find(r.ArrivalID)
}

func (s arrivals) isNew(id string) bool {
	_, err := intent.FindArrival(s.store.Read(), id)
	return errors.Is(err, v1.ErrArrivalNotFound)
}

func (s arrivals) find(id string) (v1.ArrivalView, error) {
	tx := s.store.Read()
	a, err := intent.FindArrival(tx, id)
	view := s.view(tx, a)
	if a.Spec.Ended != "" {
		return view, err
	}
	view.Stored = map[string]int64{}
	for _, b := range a.Spec.Backups {
		if stored, all := s.archives.Arrived(b); all {
			view.Backups = append(view.Backups, b.BackupID)
		} else if stored > 0 {
			view.Stored[b.BackupID] = stored
		}
	}
	return view, err
}

// list answers with the arrivals that have not ended, and those that ended in the last 30 days.
func (s arrivals) list(*call) (arrivalsBody, error) {
	tx, body := s.store.Read(), arrivalsBody{[]v1.ArrivalView{}}
	for _, a := range store.Arrivals.List(tx) {
		body.Arrivals = append(body.Arrivals, s.view(tx, a))
	}
	return body, nil
}

// open returns an arrival that can receive, and the check of a session that changes it.
func (s arrivals) open(tx *store.Tx, id string) (v1.Arrival, error) {
	a, err := intent.FindArrival(tx, id)
	switch {
	case err != nil:
		return a, err
	case a.Spec.Ended != "":
		return a, v1.Errorf(v1.Transferring, "Arrival is %s", a.Spec.Ended)
	case s.view(tx, a).State != v1.ArrivalReceiving:
		return a, v1.Errorf(v1.Unavailable, "Arrival is not ready to receive")
	}
	return a, nil
}

// within calls do for the open arrival that the path of a request names. The context ends when the client disconnects, the
// arrival or the token ends, or the server shuts down.
func (s arrivals) within(c *call, do func(ctx context.Context, a v1.Arrival) error) error {
	a, err := s.open(s.store.Read(), c.Params("arrival"))
	if err != nil {
		return err
	}
	ctx, cancel := edge.Context(c.Ctx)
	defer cancel()
	ctx, done, err := s.sessions.begin(ctx, c, func(tx *store.Tx, _ auth.Principal) error {
		_, err := s.open(tx, a.Meta.ID)
		return err
	})
	if err != nil {
		return err
	}
	defer done()
	err = do(ctx, a)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if errors.Is(err, v1.ErrVolumeRestoring) { // the source has given it up, and asks again
		return v1.Errorf(v1.Unavailable, "The last request of the arrival has not ended")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return edge.ErrMalformed // the body is shorter than announced
	}
	return err
}

// tree answers with the listing of what has arrived.
func (s arrivals) tree(c *call) error {
	a, err := s.open(s.store.Read(), c.Params("arrival"))
	if err != nil {
		return err
	}
	file, err := s.listing(c, a)
	if err != nil {
		return err
	}
	done, err := s.sessions.beginDownload(c, func(tx *store.Tx, _ auth.Principal) error {
		_, err := s.open(tx, a.Meta.ID)
		return err
	})
	if err != nil {
		file.Close()
		return err
	}
	return edge.SendFile(c.Ctx, file, edge.Download{Name: "tree.zst"}, done)
}

// listing writes the listing of an arrival to a file without a name. One is written at a time.
func (s arrivals) listing(c *call, a v1.Arrival) (*os.File, error) {
	ctx, cancel := edge.Context(c.Ctx)
	defer cancel()
	select {
	case s.spool <- struct{}{}:
		defer func() { <-s.spool }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	file, err := os.CreateTemp(s.dir, "tree-")
	if err != nil {
		return nil, err
	}
	err = os.Remove(file.Name())
	if err == nil {
		_, err = s.trees.Tree(ctx, a.Spec.Container.VolumeID, file, a.Spec.Priority())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// content receives entries of the volume of an arrival.
func (s arrivals) content(c *call) error {
	body := edge.SlowUpload(c.Ctx)
	err := s.within(c, func(ctx context.Context, a v1.Arrival) error {
		limit := store.LimitOf(s.store.Read(), v1.Volume{Meta: v1.Meta{ID: a.Spec.Container.VolumeID}, Spec: a.Spec.Volume})
		if limit == 0 {
			limit = a.Spec.Bytes
		}
		most := a.Spec.Bytes + a.Spec.Bytes/10 + limit + arrivalSlack
		return s.trees.Receive(ctx, a.Spec.Container.VolumeID, body, most, a.Spec.Priority())
	})
	return c.answer(messageBody{"Content received"}, err)
}

// backup receives the archive of a backup, from an offset on, or looks for it in the bucket of this node.
func (s arrivals) backup(c *call) error {
	body, id := edge.SlowUpload(c.Ctx), c.Params("backup")
	offset, err := strconv.ParseInt(cmp.Or(c.Query("offset"), "0"), 10, 64)
	if err != nil || offset < 0 {
		return c.answer(nil, v1.Errorf(v1.InvalidRequest, "offset: must be a number of bytes"))
	}
	err = s.within(c, func(ctx context.Context, a v1.Arrival) error {
		return s.trees.Alone(ctx, a.Spec.Container.VolumeID, func() error { // see transfer.clean
			a, err := s.open(s.store.Read(), a.Meta.ID)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(a.Spec.Backups, func(b v1.ArrivalBackup) bool { return b.BackupID == id })
			if at < 0 {
				return v1.ErrBackupNotFound
			}
			if _, all := s.archives.Arrived(a.Spec.Backups[at]); all {
				return nil
			}
			return s.archives.Receive(ctx, a.Spec.Backups[at], offset, body)
		})
	})
	return c.answer(messageBody{"Backup received"}, err)
}

// arrivalSlack is what a volume may grow to beyond what was announced, for volumes of nothing.
const arrivalSlack = 256 << 20

// commit ends an arrival by creating its container, once what has arrived is what was sent.
func (s arrivals) commit(c *call, r v1.CommitRequest) (v1.ArrivalView, error) {
	id := c.Params("arrival")
	if view, err := s.find(id); err != nil || view.State == v1.ArrivalCommitted || view.State == v1.ArrivalCancelled {
		return view, err
	}
	err := s.within(c, func(ctx context.Context, a v1.Arrival) error {
		return s.trees.Verified(ctx, a.Spec.Container.VolumeID, r.Digest, func() error {
			if a, err := s.open(s.store.Read(), id); err != nil {
				return err
			} else if err := s.complete(a); err != nil {
				return err
			}
			return intent.CommitArrival(c.writer(s.store), id, r)
		})
	})
	view, failed := s.find(id)
	if view.State == v1.ArrivalCommitted { // also if the end of the arrival has ended the session
		return view, nil
	}
	return view, errors.Join(err, failed)
}

// complete returns a refusal unless the archives of all backups of an arrival have arrived.
func (s arrivals) complete(a v1.Arrival) error {
	for _, b := range a.Spec.Backups {
		if _, all := s.archives.Arrived(b); b.Spec.Target == v1.TargetLocal && !all {
			return v1.Errorf(v1.Precondition, "The archive of backup %s has not arrived", b.BackupID)
		}
	}
	return nil
}

// cancel removes what has arrived, and answers with how the arrival has ended.
func (s arrivals) cancel(c *call) (v1.ArrivalView, error) {
	id := c.Params("arrival")
	if err := intent.CancelArrival(c.writer(s.store), id); err != nil {
		return v1.ArrivalView{}, err
	}
	return s.find(id)
}
