package intent

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	v1 "berth/api/v1"
	"berth/store"
)

// ArrivalPolicy is what the arrivals of this node must obey.
type ArrivalPolicy struct {
	Policy
	SchedulePolicy
	Incoming int // arrivals at once
}

// CheckArrival adds every error of the announcement of an arrival to f: those of a request for its container, its volume, its
// policy and its schedules.
func CheckArrival(f *v1.FieldErrors, p ArrivalPolicy, r *v1.ArrivalRequest) {
	id := r.Container.InternalID
	CheckContainer(f, p.Policy, id, &r.Container)
	r.Container.InternalID = id
	r.Volume.Storage = "" // a name of the source's
	CheckVolume(f, &r.Volume, nil)
	if !fullUUID.MatchString(r.ArrivalID) {
		f.Add("arrival_id", "must be a UUID")
	}
	if !fullUUID.MatchString(r.Container.VolumeID) {
		f.Add("container.volume_id", "must be a UUID")
	}
	if r.Bytes < 0 {
		f.Add("bytes", "must not be negative")
	}
	if r.Policy != nil {
		CheckPolicy(f, &r.Policy.PolicySpec, p.Backups, p.Has)
		if q := r.Policy.Quiesce; q != nil && q.Container != id { // a token of the scope arrive must not reach others
			f.Add("policy.quiesce.container", "must be the container that arrives")
		}
	}
	if len(r.Schedules) > maxSchedules {
		f.Add("schedules", "must be at most %d", maxSchedules)
		return
	}
	for i := range r.Schedules {
		CheckSchedule(f, p.SchedulePolicy, id, r.Schedules[i].Name, &r.Schedules[i].Spec.ScheduleSpec)
	}
	seen := map[string]bool{}
	for i := range r.Backups {
		b := &r.Backups[i]
		if seen[b.BackupID] {
			f.Add(fmt.Sprintf("backups[%d].backup_id", i), "must be there once")
		}
		seen[b.BackupID] = true
		checkArrivalBackup(f, fmt.Sprintf("backups[%d].", i), r.Container, b)
	}
}

var archiveSum = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// checkArrivalBackup adds the errors of a backup that arrives to f, and removes what belongs to the source. A target that is not
// configured is none: its archive is not found later.
func checkArrivalBackup(f *v1.FieldErrors, field string, c v1.ContainerSpec, b *v1.ArrivalBackup) {
	CheckBackup(f, &b.Spec.BackupRequest, func(v1.Target) bool { return true })
	st := b.Status
	if !fullUUID.MatchString(b.BackupID) {
		f.Add(field+"backup_id", "must be a UUID")
	}
	if by := b.Spec.Schedule; by != "" && !strings.HasPrefix(by, v1.ScheduleID(c.InternalID, "")) {
		f.Add(field+"spec.schedule", "must be of the container that arrives")
	}
	if !archiveSum.MatchString(st.Checksum) || st.Size < 0 || st.Unpacked < 0 || st.Files < 0 || st.SkippedTotal < 0 {
		f.Add(field+"status", "must have the size and the checksum of an archive")
	}
	b.Spec = v1.BackupSpec{VolumeID: c.VolumeID, BackupRequest: b.Spec.BackupRequest, Policy: b.Spec.Policy, Schedule: b.Spec.Schedule}
	b.Status = v1.BackupStatus{State: v1.JobCompleted, StartedAt: st.StartedAt, FinishedAt: st.FinishedAt, Size: st.Size,
		Unpacked: st.Unpacked, Files: st.Files, Checksum: st.Checksum,
		Skipped:      v1.FirstSkipped(st.Skipped, v1.ListedSkipped, v1.ListedSkippedBytes),
		SkippedTotal: st.SkippedTotal, Progress: v1.Progress{Bytes: st.Unpacked, Total: st.Unpacked}}
}

// FindArrival returns an arrival, or v1.ErrArrivalNotFound.
func FindArrival(tx *store.Tx, id string) (v1.Arrival, error) {
	o, err := store.Arrivals.Get(tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return o, v1.ErrArrivalNotFound
	}
	return o, err
}

// arriving returns the arrival of a container that has not ended, or "".
func arriving(tx *store.Tx, container string) string {
	for _, a := range store.Arrivals.ListBy(tx, container) {
		if a.Spec.Ended == "" {
			return a.Meta.ID
		}
	}
	return ""
}

// PutArrival stores the announcement of an arrival, which CheckArrival has accepted, in place of the one before. It
// claims the ports, and creates a volume that only the arrival may change. An arrival that has ended stays as it is. Its refusals are
// v1.ErrPortNotInPool, v1.ErrNoPorts, v1.ErrTransferring, those of limits.Admit, and the codes ContainerExists, VolumeInUse,
// Unavailable, PortBound, BackupExists and TooManyArrivals.
func PutArrival(s store.Writer, p ArrivalPolicy, r v1.ArrivalRequest) error {
	return s.Update(func(tx *store.Tx) error {
		container, volume := r.Container.InternalID, r.Container.VolumeID
		old, err := FindArrival(tx, r.ArrivalID)
		known := err == nil
		switch {
		case known && old.Spec.Ended != "":
			return nil
		case known && (old.Spec.Container.InternalID != container || old.Spec.Container.VolumeID != volume):
			return v1.Errorf(v1.InvalidRequest, "arrival_id: is that of another container")
		case !known && !errors.Is(err, v1.ErrArrivalNotFound):
			return err
		case !known:
			err = admitArrival(tx, p, r)
		default:
			err = nil
		}
		spec := v1.ArrivalSpec{ArrivalRequest: r, RequestedBy: tx.Actor()}
		if err == nil {
			spec.Dropped, err = admitBackups(tx, old.Spec, r)
		}
		if err == nil && r.RandomPorts {
			spec.Ports, err = choosePorts(tx, container, old.Spec.Ports, r.Container.Ports)
			r.Container.Ports = MapPorts(new(v1.FieldErrors), r.Container.Ports, spec.Ports)
			spec.Container.Ports = r.Container.Ports
		}
		if err == nil {
			err = checkPorts(tx, container, r.Container.Ports)
		}
		if err == nil {
			err = claim(tx, container, old.Spec.Container.Ports, r.Container.Ports)
		}
		if err != nil {
			return err
		}
		if known {
			err = errors.Join(
				store.Volumes.SetSpec(tx, volume, func(v *v1.VolumeSpec) error { *v = r.Volume; return nil }),
				store.Arrivals.SetSpec(tx, r.ArrivalID, func(a *v1.ArrivalSpec) error { *a = spec; return nil }))
		} else {
			err = errors.Join(store.Volumes.Create(tx, volume, r.Volume), store.Reserve(tx, v1.ByArrival(r.ArrivalID), volume),
				store.Arrivals.Create(tx, r.ArrivalID, spec))
		}
		return errors.Join(err, checkBackupSpace(tx, p.Backups, r))
	})
}

// admitBackups returns the backups that were announced before and are no more, or why those that are announced cannot arrive.
func admitBackups(tx *store.Tx, old v1.ArrivalSpec, r v1.ArrivalRequest) ([]v1.ArrivalBackup, error) {
	elsewhere, before := expected(tx, r.ArrivalID), map[string]v1.ArrivalBackup{}
	for _, b := range slices.Concat(old.Dropped, old.Backups) {
		before[b.BackupID] = b
	}
	for _, b := range r.Backups {
		same, known := before[b.BackupID]
		delete(before, b.BackupID)
		if known && (same.Spec.Target != b.Spec.Target || v1.ArchiveOf(same.Status) != v1.ArchiveOf(b.Status)) {
			return nil, v1.Errorf(v1.InvalidRequest, "backups: %s has changed", b.BackupID)
		}
		switch own, err := FindBackup(tx, b.BackupID); {
		case err == nil && own.Meta.Deleted:
			return nil, v1.Errorf(v1.Unavailable, "Backup is being deleted") // the source asks again
		case err == nil:
			return nil, v1.Errorf(v1.BackupExists, "There is a backup with the id %s already: delete it first", b.BackupID)
		case !errors.Is(err, v1.ErrBackupNotFound):
			return nil, err
		case elsewhere[b.BackupID]:
			return nil, v1.Errorf(v1.Unavailable, "What another transfer has sent of backup %s is still here", b.BackupID)
		}
	}
	return slices.SortedFunc(maps.Values(before), func(a, b v1.ArrivalBackup) int { return strings.Compare(a.BackupID, b.BackupID) }), nil
}

// expected returns the ids of the backups whose archives arrivals other than one may have.
func expected(tx *store.Tx, except string) map[string]bool {
	ids := map[string]bool{}
	for a := range store.Arrivals.After(tx, "") {
		if a.Meta.ID == except || a.Status.Cleaned {
			continue
		}
		for _, id := range a.Spec.Archives() {
			ids[id] = true
		}
	}
	return ids
}

// checkBackupSpace returns why the backups of an arrival, which is stored, exceed a limit, or nil.
func checkBackupSpace(tx *store.Tx, limits v1.BackupsConfig, r v1.ArrivalRequest) error {
	for _, target := range v1.Targets() {
		if !slices.ContainsFunc(r.Backups, func(b v1.ArrivalBackup) bool { return b.Spec.Target == target }) {
			continue
		}
		use := store.BackupUse(tx, r.Container.VolumeID, target, int64(limits.MaxVolumeSize))
		use.Volume, use.Host, use.Bytes, use.VolumeBytes = use.Volume-1, use.Host-1, use.Bytes-1, use.VolumeBytes-1 // they count already
		if err := limits.Admit(target, use); err != nil {
			return err
		}
	}
	return nil
}

// choosePorts returns a free port of the pool for each port of a container that arrives, and claims it. Those that were chosen
// before stay. Its refusal is v1.ErrNoPorts.
func choosePorts(tx *store.Tx, container string, before []v1.TransferPort, ports []v1.Port) (chosen []v1.TransferPort, err error) {
	for _, p := range ports {
		next := v1.TransferPort{IP: p.IP, Port: p.Port, Protocol: p.Protocol}
		same := func(b v1.TransferPort) bool { return b.IP == p.IP && b.Port == p.Port && b.Protocol == p.Protocol }
		if at := slices.IndexFunc(before, same); at >= 0 {
			next.To = before[at].To
		} else {
			free, err := RandomPort(tx, "", p.Protocol)
			if err != nil {
				return nil, err
			}
			next.To = v1.PortAddress{IP: free.IP, Port: free.Port}
			if err := setClaim(tx, v1.PoolID(free.IP, p.Protocol), free.Port, v1.Claim{Container: container, InUse: true}); err != nil {
				return nil, err
			}
		}
		chosen = append(chosen, next)
	}
	return chosen, nil
}

// admitArrival returns why a new arrival is refused, or nil.
func admitArrival(tx *store.Tx, p ArrivalPolicy, r v1.ArrivalRequest) error {
	container, volume := r.Container.InternalID, r.Container.VolumeID
	if _, err := FindTransfer(tx, r.ArrivalID); !errors.Is(err, v1.ErrTransferNotFound) {
		return v1.Errorf(v1.InvalidRequest, "arrival_id: is a transfer of this node: the destination is the source")
	}
	switch _, err := findActive(tx, container); {
	case err == nil:
		return v1.ErrContainerExists
	case errors.Is(err, errDeleting):
		return v1.Errorf(v1.Unavailable, "Container is being deleted") // the source asks again
	case !errors.Is(err, v1.ErrContainerNotFound):
		return err
	case arriving(tx, container) != "":
		return v1.ErrTransferring
	}
	switch v, err := store.Volumes.Get(tx, volume); {
	case err == nil && v.Meta.Deleted:
		return v1.Errorf(v1.Unavailable, "Volume is being deleted")
	case err == nil:
		return v1.Errorf(v1.VolumeInUse, "There is a volume with the id %s already: delete it first", volume)
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	open := 0
	for _, a := range store.Arrivals.List(tx) {
		if a.Spec.Ended == "" {
			open++
		}
	}
	if open >= p.Incoming {
		return v1.Errorf(v1.TooManyArrivals, "%d containers are arriving (transfers.incoming): wait until one of them has", open)
	}
	return nil
}

// CommitArrival creates the container of an arrival, with its backup policy, its schedules and its backups, whose archives
// have arrived. From then on it has ended. One that has ended before stays as it is.
func CommitArrival(s store.Writer, id string, r v1.CommitRequest) error {
	return s.Update(func(tx *store.Tx) error {
		a, err := FindArrival(tx, id)
		if err != nil || a.Spec.Ended != "" {
			return err
		}
		container, volume := a.Spec.Container.InternalID, a.Spec.Container.VolumeID
		if err := endArrival(tx, a, v1.ArrivalCommitted); err != nil {
			return err
		}
		spec := a.Spec.Container
		spec.InternalID, spec.Power = "", v1.PowerOff
		if r.Start {
			spec.Power = v1.PowerOn
		}
		spec = initialSpec(spec)
		spec.Arrived = spec.InstallGeneration
		if err := create(tx, container, spec); err != nil {
			return err
		}
		if policy := a.Spec.Policy; policy != nil {
			policy.RequestedBy = tx.Actor()
			if err := store.Policies.Create(tx, volume, policy.PolicySpec); err != nil {
				return err
			}
		}
		for _, schedule := range a.Spec.Schedules {
			spec := schedule.Spec.ScheduleSpec
			spec.Container, spec.Name, spec.RequestedBy = container, schedule.Name, tx.Actor()
			if err := store.Schedules.Create(tx, v1.ScheduleID(container, schedule.Name), spec); err != nil {
				return err
			}
		}
		for _, b := range a.Spec.Backups {
			b.Spec.RequestedBy = tx.Actor()
			o := v1.Backup{Meta: v1.Meta{CreatedAt: b.CreatedAt}, Spec: b.Spec, Status: b.Status}
			if err := store.Backups.Import(tx, b.BackupID, o); err != nil {
				return err
			}
		}
		return nil
	})
}

// endArrival records how an arrival has ended, and ends the reservation of its volume.
func endArrival(tx *store.Tx, a v1.Arrival, how v1.ArrivalState) error {
	err := store.EndRestore(tx, v1.ByArrival(a.Meta.ID), a.Spec.Container.VolumeID)
	return errors.Join(err, store.Arrivals.SetSpec(tx, a.Meta.ID, func(spec *v1.ArrivalSpec) error {
		spec.Ended, spec.EndedAt = how, tx.Now()
		return nil
	}))
}

// CancelArrival removes what has arrived. An arrival that has ended stays as it is. Its refusal is v1.ErrArrivalNotFound.
func CancelArrival(s store.Writer, id string) error {
	return s.MustUpdate(func(tx *store.Tx) error {
		a, err := FindArrival(tx, id)
		if err != nil || a.Spec.Ended != "" {
			return err
		}
		if err := endArrival(tx, a, v1.ArrivalCancelled); err != nil {
			return err
		}
		container := a.Spec.Container
		return errors.Join(claim(tx, container.InternalID, container.Ports, nil), store.Volumes.Delete(tx, container.VolumeID))
	})
}
