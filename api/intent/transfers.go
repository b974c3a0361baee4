package intent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// The limits of a request for a transfer.
const (
	maxTransferURL = 2048
	maxTransferKey = 512
	maxTransferred = 1000 // ports
	maxVolumeKeep  = 30 * 24 * time.Hour
)

// CheckTransfer adds every error of a request for a transfer to f, and sets its defaults.
func CheckTransfer(f *v1.FieldErrors, r *v1.TransferRequest) {
	if r.Keep == nil {
		keep := v1.Duration(24 * time.Hour)
		r.Keep = &keep
	}
	u, err := url.Parse(r.URL)
	if err != nil || len(r.URL) > maxTransferURL || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		f.Add("url", "must be the http or https URL of another daemon, without user or query")
	}
	if r.Token == "" || len(r.Token) > maxTransferKey || !v1.IsName(r.Token[:min(len(r.Token), 128)]) {
		f.Add("token", "must be a token that was minted at the destination with the scope arrive")
	}
	if keep := time.Duration(*r.Keep); keep < 0 || keep > maxVolumeKeep {
		f.Add("keep", "must be between 0 and 30d")
	}
	if r.Bandwidth != 0 && r.Bandwidth < v1.LeastBandwidth {
		f.Add("bandwidth", "must be 0, or at least %d bytes a second", v1.LeastBandwidth)
	}
	if r.RandomPorts && len(r.Ports) > 0 {
		f.Add("ports", "must be empty with random_ports")
	}
	if len(r.Ports) > maxTransferred {
		f.Add("ports", "must be at most %d", maxTransferred)
		return
	}
	for i := range r.Ports {
		p := &r.Ports[i]
		checkTransferAddress(f, fmt.Sprintf("ports[%d].ip", i), &p.IP)
		checkTransferAddress(f, fmt.Sprintf("ports[%d].to.ip", i), &p.To.IP)
		if p.To.Port < 1 || p.To.Port > 65535 {
			f.Add(fmt.Sprintf("ports[%d].to.port", i), "must be between 1 and 65535")
		}
	}
}

func checkTransferAddress(f *v1.FieldErrors, key string, text *string) {
	addr, err := netip.ParseAddr(*text)
	if err != nil {
		f.Add(key, "must be an IP address")
		return
	}
	*text = addr.String()
}

// CreateTransfer requests that a container is moved to another node. CheckTransfer has accepted the request. Its refusals are
// v1.ErrContainerNotFound, v1.ErrTransferring, v1.ErrVolumeRestoring, v1.FieldErrors for a port that the container
// does not have, and the codes ContainerDeleting, StillInstalling and VolumeInUse.
func CreateTransfer(s store.Writer, id, container string, r v1.TransferRequest) error {
	return s.Update(func(tx *store.Tx) error {
		o, err := findActive(tx, container)
		if err != nil {
			return err
		}
		for _, t := range store.Transfers.ListBy(tx, container) {
			if !v1.TransferStateOf(t).Finished() {
				return v1.ErrTransferring
			}
		}
		if err := checkMovable(tx, o); err != nil {
			return err
		}
		var f v1.FieldErrors
		if MapPorts(&f, o.Spec.Ports, r.Ports); f.Any() {
			return f.Err()
		}
		return store.Transfers.Create(tx, id, v1.TransferSpec{Container: container, UID: o.Meta.UID, VolumeID: o.Spec.VolumeID,
			TransferRequest: r, RequestedBy: tx.Actor()})
	})
}

// checkMovable returns why a container cannot be moved now, or nil.
func checkMovable(tx *store.Tx, o v1.Container) error {
	if err := v1.ReservedBy(store.Restoring(tx, o.Spec.VolumeID)); err != nil {
		return err
	}
	if v1.IsInstalling(o) || o.Status.InstallFailed {
		return v1.Errorf(v1.StillInstalling, "Cannot transfer the container: it is not installed")
	}
	for _, by := range HoldersOf(tx, o.Spec.VolumeID) {
		if by != o.Meta.ID {
			return errVolumeInUse(by)
		}
	}
	return nil
}

// MapPorts returns the ports of a container after a transfer, and adds an error for each entry of to that is about none of
// them.
func MapPorts(f *v1.FieldErrors, ports []v1.Port, to []v1.TransferPort) []v1.Port {
	mapped := append([]v1.Port(nil), ports...)
	for i, entry := range to {
		found := false
		for j, p := range ports {
			if p.IP == entry.IP && p.Port == entry.Port && p.Protocol == entry.Protocol {
				found = true
				if p.ContainerPort == 0 { // the port in the container stays
					mapped[j].ContainerPort = p.Port
				}
				mapped[j].IP, mapped[j].Port = entry.To.IP, entry.To.Port
				if mapped[j].ContainerPort == mapped[j].Port {
					mapped[j].ContainerPort = p.ContainerPort
				}
			}
		}
		if !found {
			f.Add(fmt.Sprintf("ports[%d].port", i), "the container does not have this port")
		}
	}
	return mapped
}

// FindTransfer returns a transfer, or v1.ErrTransferNotFound.
func FindTransfer(tx *store.Tx, id string) (v1.Transfer, error) {
	o, err := store.Transfers.Get(tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return o, v1.ErrTransferNotFound
	}
	return o, err
}

// CancelTransfer requests the end of a transfer: the container stays here. One that has ended stays as it is.
func CancelTransfer(s store.Writer, id string) error { return cancelTransfer(s, id, false) }

// AbandonTransfer is CancelTransfer for a destination that will never run the container, as an operator knows.
func AbandonTransfer(s store.Writer, id string) error { return cancelTransfer(s, id, true) }

func cancelTransfer(s store.Writer, id string, gone bool) error {
	return s.MustUpdate(func(tx *store.Tx) error {
		o, err := FindTransfer(tx, id)
		if err != nil || v1.TransferStateOf(o).Finished() {
			return err
		}
		return store.Transfers.SetSpec(tx, id, func(spec *v1.TransferSpec) error {
			spec.Cancels++
			spec.Gone, spec.RequestedBy = spec.Gone || gone, tx.Actor()
			return nil
		})
	})
}

// ReserveTransfer reserves the volume of a container that is about to be stopped for its transfer.
func ReserveTransfer(tx *store.Tx, t v1.Transfer) error {
	o, err := findActive(tx, t.Spec.Container)
	if err == nil && (o.Meta.UID != t.Spec.UID || o.Spec.VolumeID != t.Spec.VolumeID) {
		err = v1.ErrContainerNotFound
	}
	if err == nil {
		err = checkMovable(tx, o)
	}
	if err != nil {
		return err
	}
	return store.Reserve(tx, v1.ByTransfer(t.Meta.ID), t.Spec.VolumeID)
}

// ReleaseTransfer ends the reservation of a transfer: the container stays here.
func ReleaseTransfer(tx *store.Tx, t v1.Transfer) error {
	return store.EndRestore(tx, v1.ByTransfer(t.Meta.ID), t.Spec.VolumeID)
}

// CompleteTransfer ends a transfer whose container is at the destination: it is deleted here with its backup policy. The
// destination owns the archives in S3 of the backups that were transferred, whose records are removed here. The local ones are
// marked for DeleteMoved.
func CompleteTransfer(tx *store.Tx, t v1.Transfer) error {
	if err := ReleaseTransfer(tx, t); err != nil {
		return err
	}
	for b := range store.Backups.Each(tx, t.Status.Backups) {
		var err error
		if b.Spec.Target == v1.TargetLocal {
			err = store.Backups.SetSpec(tx, b.Meta.ID, func(s *v1.BackupSpec) error { s.MovedBy = t.Meta.ID; return nil })
		} else {
			err = store.PurgeBackup(tx, b.Meta.ID) // its archive belongs to the other node
		}
		if err != nil {
			return err
		}
	}
	o, err := FindContainer(tx, t.Spec.Container)
	if errors.Is(err, v1.ErrContainerNotFound) || err == nil && o.Meta.UID != t.Spec.UID {
		return nil
	}
	return errors.Join(err, store.Policies.Purge(tx, t.Spec.VolumeID), deleteContainer(tx, o))
}

// DeleteMoved requests the deletion of the backups of a volume that a transfer has copied to another node. Its refusal is the code
// BackupInUse.
func DeleteMoved(s store.Writer, t v1.Transfer) error {
	return s.MustUpdate(func(tx *store.Tx) error {
		for _, b := range store.Backups.ListBy(tx, t.Spec.VolumeID) {
			if b.Spec.MovedBy != t.Meta.ID {
				continue
			}
			if err := deleteBackup(tx, b.Meta.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteMovedVolume is DeleteVolume for the volume that a transfer has copied to another node. One that has come back meanwhile is
// another volume, and counts as not found.
func DeleteMovedVolume(s store.Writer, t v1.Transfer) error {
	return s.Update(func(tx *store.Tx) error {
		o, err := getVolume(tx, t.Spec.VolumeID)
		if err == nil && o.Meta.Created > t.Meta.Created {
			err = v1.ErrVolumeNotFound
		}
		if err != nil {
			return err
		}
		return deleteUnused(tx, o.Meta.ID)
	})
}

// Movable returns the backups that a transfer can take along, by id: they are completed, and nothing restores them.
func Movable(tx *store.Tx, t v1.Transfer) (list []v1.Backup) {
	if !t.Spec.Backups {
		return nil
	}
	for _, b := range store.Backups.ListBy(tx, t.Spec.VolumeID) {
		read := slices.ContainsFunc(store.Restores.ListBy(tx, b.Meta.ID), func(r v1.Restore) bool { return !r.Status.State.Finished() })
		if v1.BackupStateOf(b) == v1.JobCompleted && !read {
			list = append(list, b)
		}
	}
	return list
}

// AnnounceTransfer returns what a transfer announces to its destination, as it is stored now.
func AnnounceTransfer(tx *store.Tx, t v1.Transfer) (r v1.ArrivalRequest, err error) {
	o, err := FindContainer(tx, t.Spec.Container)
	if err == nil && o.Meta.UID != t.Spec.UID {
		err = v1.ErrContainerNotFound
	}
	if err != nil {
		return r, err
	}
	volume, err := getVolume(tx, t.Spec.VolumeID)
	if err != nil {
		return r, err
	}
	spec := o.Spec
	spec.InternalID, spec.Ports = o.Meta.ID, MapPorts(new(v1.FieldErrors), o.Spec.Ports, t.Spec.Ports)
	spec.Deferred, spec.RequestedBy, spec.Power = nil, v1.Actor{}, v1.PowerOff
	spec.InstallGeneration, spec.RunGeneration, spec.KillGeneration, spec.Arrived = 0, 0, 0, 0
	r = v1.ArrivalRequest{ArrivalID: t.Meta.ID, Container: spec, Volume: volume.Spec, Bytes: volume.Status.Size,
		RandomPorts: t.Spec.RandomPorts, Stopped: v1.TransferStateOf(t) == v1.TransferFinishing}
	switch policy, err := FindPolicy(tx, t.Spec.VolumeID); {
	case err == nil:
		policy.Spec.Maker, policy.Spec.RequestedBy = v1.Maker{}, v1.Actor{}
		r.Policy = &v1.PolicyView{PolicySpec: policy.Spec}
	case !errors.Is(err, v1.ErrPolicyNotFound):
		return r, err
	}
	for _, schedule := range store.Schedules.ListBy(tx, o.Meta.ID) {
		schedule.Spec.Container, schedule.Spec.RunGeneration, schedule.Spec.RequestedBy = "", 0, v1.Actor{}
		r.Schedules = append(r.Schedules, v1.ArrivalSchedule{Name: schedule.Spec.Name, Spec: v1.ScheduleView{ScheduleSpec: schedule.Spec}})
	}
	var backups []v1.ArrivalBackup
	for _, b := range Movable(tx, t) {
		if r.Stopped && !slices.Contains(t.Status.Backups, b.Meta.ID) {
			continue // its archive has not arrived, and nobody waits for it
		}
		b.Spec.Maker, b.Spec.RequestedBy, b.Spec.MovedBy = v1.Maker{}, v1.Actor{}, ""
		backups = append(backups, v1.ArrivalBackup{BackupID: b.Meta.ID, CreatedAt: b.Meta.CreatedAt, Spec: b.Spec, Status: b.Status})
	}
	if !r.Stopped { // then all of them go: those that have arrived are deleted here
		backups = fitting(backups, maxAnnouncement-sizeOf(r))
	}
	r.Backups = backups
	return r, nil
}

// maxAnnouncement bounds an announcement, in bytes: the destination accepts a MiB unless its server.body_limit is lower.
const maxAnnouncement = int(v1.MiB - v1.KiB)

// fitting returns the newest of some backups, as many as have so many bytes in an announcement. The others stay here.
func fitting(backups []v1.ArrivalBackup, free int) []v1.ArrivalBackup {
	slices.SortStableFunc(backups, func(a, b v1.ArrivalBackup) int { return b.CreatedAt.Compare(a.CreatedAt) })
	for i, b := range backups {
		if free -= sizeOf(b) + 1; free < 0 { // and a comma
			return backups[:i]
		}
	}
	return backups
}

// sizeOf returns the bytes of a part of an announcement.
func sizeOf(part any) int {
	text, _ := json.Marshal(part) // stored objects can be encoded
	return len(text)
}

// Runs reports whether the container of a transfer is to run.
func Runs(tx *store.Tx, t v1.Transfer) bool {
	o, err := FindContainer(tx, t.Spec.Container)
	return err == nil && o.Spec.Power == v1.PowerOn
}

// ForgetToken removes the token of a transfer that has ended.
func ForgetToken(tx *store.Tx, id string) error {
	return store.Transfers.SetSpec(tx, id, func(spec *v1.TransferSpec) error {
		spec.Token = ""
		return nil
	})
}
