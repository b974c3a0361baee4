package server

import (
	"time"

	v1 "berth/api/v1"
)

type backupView struct {
	BackupID     string           `json:"backup_id"`
	VolumeID     string           `json:"volume_id"`
	Name         string           `json:"name"`
	Target       v1.Target        `json:"target"`
	Policy       bool             `json:"policy"`
	State        v1.JobState      `json:"state"`
	Size         *int64           `json:"size"`
	Files        *int64           `json:"files"`
	Skipped      []v1.Skipped     `json:"skipped"`
	SkippedTotal int64            `json:"skipped_total"`
	Checksum     *string          `json:"checksum"`
	Progress     v1.Progress      `json:"progress"`
	CreatedAt    int64            `json:"created_at"`
	StartedAt    *time.Time       `json:"started_at"`
	FinishedAt   *time.Time       `json:"finished_at"`
	Message      string           `json:"message"`
	Restores     []v1.RestoreView `json:"restores"`
}

func viewOfBackup(b v1.Backup, restores []v1.Restore) backupView {
	st := b.Status
	v := backupView{
		BackupID: b.Meta.ID, VolumeID: b.Spec.VolumeID, Name: b.Spec.Name, Target: b.Spec.Target, Policy: b.Spec.Policy,
		State: v1.BackupStateOf(b), Skipped: st.Skipped, SkippedTotal: st.SkippedTotal, Progress: st.Progress,
		CreatedAt: b.Meta.CreatedAt.Unix(), StartedAt: st.StartedAt, FinishedAt: st.FinishedAt, Message: st.Message,
		Restores: []v1.RestoreView{},
	}
	if st.Checksum != "" {
		v.Size, v.Files, v.Checksum = &st.Size, &st.Files, &st.Checksum
	}
	if v.Skipped == nil {
		v.Skipped = []v1.Skipped{}
	}
	for _, r := range restores {
		v.Restores = append(v.Restores, viewOfRestore(r))
	}
	return v
}

func viewOfRestore(r v1.Restore) v1.RestoreView {
	return v1.RestoreView{
		RestoreID: r.Meta.ID, VolumeID: r.Spec.VolumeID, Mode: r.Spec.Mode, State: v1.RestoreStateOf(r),
		StartedAt: r.Status.StartedAt, FinishedAt: r.Status.FinishedAt, Message: r.Status.Message,
	}
}

// quiesceBody is how a container is brought to rest.
type quiesceBody struct {
	Container string      `json:"container" api:"required"`
	Before    string      `json:"before"`
	WaitFor   string      `json:"wait_for"`
	After     string      `json:"after"`
	Timeout   v1.Duration `json:"timeout"`
}

func quiesceOf(q *v1.Quiesce) *quiesceBody {
	if q == nil {
		return nil
	}
	return &quiesceBody{q.Container, q.Before, q.WaitFor, q.After, q.Timeout}
}

func (q *quiesceBody) spec() *v1.Quiesce {
	if q == nil {
		return nil
	}
	return &v1.Quiesce{Container: q.Container, Before: q.Before, WaitFor: q.WaitFor, After: q.After, Timeout: q.Timeout}
}
