package v1

import (
	"encoding/json"
	"strings"
	"time"
)

// Backup is a copy of the files of a volume at a time. Its id is a UUID.
type Backup = Object[BackupSpec, BackupStatus]

// BackupSpec is the desired state of a backup. It does not change, except for its
// requesters.
type BackupSpec struct {
	VolumeID string `json:"volume_id"`
	BackupRequest
	Policy bool `json:"policy,omitempty"` // the policy of the volume made it, and removes it

	Schedule string `json:"schedule,omitempty"` // the ScheduleID of the schedule that made it, and removes it
	MovedBy  string `json:"moved_by,omitempty"` // the transfer that has copied it to another node, and removes it here

	Maker       Maker `json:"maker,omitzero"`
	RequestedBy Actor `json:"requested_by,omitzero"`
	DeletedBy   Actor `json:"deleted_by,omitzero"`
}

// Keys returns the volume.
func (s BackupSpec) Keys() []string { return []string{s.VolumeID} }

// Maker is whose rights a policy or a backup uses after the request that made it. The zero Maker is a
// panel, whose rights do not end: the configured token, or one with the scope admin for all
// containers.
type Maker struct {
	TokenID string `json:"token_id,omitempty"` // empty: it was for one request
	UID     string `json:"uid,omitempty"`      // of the container to quiesce; empty: none
}

// BackupRequest is the body of a request for a backup.
type BackupRequest struct {
	Name    string   `json:"name,omitempty"`   // for people; need not be unique
	Target  Target   `json:"target,omitempty"` // empty in a request: TargetLocal
	Ignore  []string `json:"ignore,omitempty"` // patterns of paths that are left out, as in .gitignore
	Quiesce *Quiesce `json:"quiesce,omitempty"`
}

// BackupView is a backup as clients receive it.
type BackupView struct {
	BackupID     string        `json:"backup_id"`
	VolumeID     string        `json:"volume_id"`
	Name         string        `json:"name"`
	Target       Target        `json:"target"`
	Policy       bool          `json:"policy"`   // the policy of the volume made it
	Schedule     string        `json:"schedule"` // container/name of the schedule that made it; empty: none
	State        JobState      `json:"state"`
	Size         *int64        `json:"size"`    // bytes of the archive; nil until it is completed, as the next one
	Files        *int64        `json:"files"`   // entries that are not folders
	Skipped      []Skipped     `json:"skipped"` // in a list at most 10, and 2 KiB of paths
	SkippedTotal int64         `json:"skipped_total"`
	Checksum     NullString    `json:"checksum"`
	Progress     Progress      `json:"progress"`
	CreatedAt    int64         `json:"created_at"` // Unix seconds
	StartedAt    *time.Time    `json:"started_at"`
	FinishedAt   *time.Time    `json:"finished_at"`
	Message      string        `json:"message"`
	Restores     []RestoreView `json:"restores"` // the newest first
}

// MarshalJSON writes empty lists for those that are nil.
func (b BackupView) MarshalJSON() ([]byte, error) { return marshalWhole(b) }

// ViewOfBackup returns a backup and its restores as clients receive them.
func ViewOfBackup(b Backup, restores []Restore) BackupView {
	st := b.Status
	v := BackupView{
		BackupID: b.Meta.ID, VolumeID: b.Spec.VolumeID, Name: b.Spec.Name, Target: b.Spec.Target, Policy: b.Spec.Policy,
		Schedule: strings.Replace(b.Spec.Schedule, ":", "/", 1),
		State:    BackupStateOf(b), Skipped: st.Skipped, SkippedTotal: st.SkippedTotal, Checksum: NullString(st.Checksum), Progress: st.Progress,
		CreatedAt: b.Meta.CreatedAt.Unix(), StartedAt: st.StartedAt, FinishedAt: st.FinishedAt, Message: st.Message,
	}
	if st.Checksum != "" {
		v.Size, v.Files = &st.Size, &st.Files
	}
	for _, r := range restores {
		v.Restores = append(v.Restores, RestoreView{
			RestoreID: r.Meta.ID, VolumeID: r.Spec.VolumeID, Mode: r.Spec.Mode, State: RestoreStateOf(r),
			StartedAt: r.Status.StartedAt, FinishedAt: r.Status.FinishedAt, Message: r.Status.Message,
		})
	}
	return v
}

// RestoreRequest is the body of a request for a restore.
type RestoreRequest struct {
	VolumeID string `json:"volume_id,omitempty"` // empty: that of the backup
	Mode     string `json:"mode,omitempty"`      // RestoreReplace or RestoreMerge; empty in a request: RestoreReplace, with Paths RestoreMerge
	Stop     bool   `json:"stop,omitempty"`      // containers that use the volume are stopped meanwhile

	Paths []string `json:"paths,omitempty"` // the only entries to restore, with all below them; empty: all
}

// Target is where an archive is stored.
type Target string

// The targets.
const (
	TargetLocal Target = "local" // a directory of the host
	TargetS3    Target = "s3"
)

// Targets returns all targets.
func Targets() []Target { return []Target{TargetLocal, TargetS3} }

// Quiesce is how a container is brought to rest while its volume is read.
type Quiesce struct {
	Container string   `json:"container" api:"required"` // internal_id
	Before    string   `json:"before"`                   // console command before the volume is read; empty: none
	WaitFor   string   `json:"wait_for"`                 // RE2, of a line after Before; empty: none
	After     string   `json:"after"`                    // console command afterwards, sent at least once; empty: none
	Timeout   Duration `json:"timeout"`                  // for the line
}

// JobState is the state of a backup or a restore. Each change of it is an event.
type JobState string

// The states. A restore is never deleting.
const (
	JobPending   JobState = "pending"
	JobRunning   JobState = "running"
	JobCompleted JobState = "completed"
	JobFailed    JobState = "failed"
	JobDeleting  JobState = "deleting"
)

// Finished reports whether nothing more happens by itself.
func (s JobState) Finished() bool { return s == JobCompleted || s == JobFailed }

// Progress is how much of a job is done, in uncompressed bytes.
type Progress struct {
	Bytes int64 `json:"bytes"`
	Total int64 `json:"total"` // estimated until the job has ended
}

// BackupStatus is the observed state of a backup.
type BackupStatus struct {
	State    JobState `json:"state"` // empty: pending, and not recorded yet
	Seq      uint64   `json:"seq"`   // of the event that reported State
	Attempts int      `json:"attempts,omitempty"`
	Progress Progress `json:"progress,omitzero"`
	Message  string   `json:"message,omitempty"`

	StartedAt  *time.Time `json:"started_at,omitempty"` // of the last attempt
	FinishedAt *time.Time `json:"finished_at,omitempty"`

	// Of a completed backup.
	Size         int64     `json:"size,omitempty"`     // bytes of the archive
	Unpacked     int64     `json:"unpacked,omitempty"` // bytes on disk that it extracts to
	Files        int64     `json:"files,omitempty"`    // entries that are not folders
	Checksum     string    `json:"checksum,omitempty"` // sha256:<hex> of the archive
	Skipped      []Skipped `json:"skipped,omitempty"`  // the first ones: ListedSkipped, of ListedSkippedBytes; the store has the others
	SkippedTotal int64     `json:"skipped_total,omitempty"`

	ResumeDue bool `json:"resume_due,omitempty"` // Quiesce.After has to be sent: Before was, or may have been
	Leftover  bool `json:"leftover,omitempty"`   // of a failed backup: the target may still have a part of the archive
}

// BackupPolicy makes and removes backups of a volume periodically. Its id is that of
// the volume.
type BackupPolicy = Object[PolicySpec, PolicyStatus]

// PolicySpec is the desired state of a backup policy.
type PolicySpec struct {
	Every    Duration `json:"every,omitempty"`     // the time between two backups; 0: Cron is when they are made
	Cron     string   `json:"cron,omitempty"`      // see ParseCron; empty: Every is set
	Timezone string   `json:"timezone,omitempty"`  // IANA name, of Cron; empty in a request: UTC
	Keep     int      `json:"keep" api:"required"` // completed backups, and as many failed ones
	Target   Target   `json:"target,omitempty"`
	Ignore   []string `json:"ignore,omitempty"`
	Quiesce  *Quiesce `json:"quiesce,omitempty"`

	Maker       Maker `json:"maker,omitzero" api:"-"`
	RequestedBy Actor `json:"requested_by,omitzero" api:"-"`
}

// PolicyView is a backup policy as clients receive it, and the body that sets one.
type PolicyView struct {
	VolumeID string `json:"volume_id" api:"readonly"`
	PolicySpec
	NextRunAt *time.Time `json:"next_run_at" api:"readonly"`
	Message   string     `json:"message" api:"readonly"` // why the last run made no backup; empty: it did
}

// MarshalJSON writes every field.
func (p PolicyView) MarshalJSON() ([]byte, error) { return marshalWhole(p) }

// PolicyStatus is the observed state of a backup policy.
type PolicyStatus struct {
	Every     Duration   `json:"every,omitempty"` // of the spec that NextRunAt was computed from, as CronState
	CronState            // Handled: of policies with Every as well
	NextRunAt *time.Time `json:"next_run_at,omitempty"`
	Period    Duration   `json:"period,omitempty"`  // with Cron: the longer one of the last and the present time between two backups
	Message   string     `json:"message,omitempty"` // why the last run made no backup; empty: it did
}

// Restore puts the content of a backup into a volume. Its id is a UUID.
type Restore = Object[RestoreSpec, RestoreStatus]

// RestoreSpec is the desired state of a restore.
type RestoreSpec struct {
	BackupID string `json:"backup_id"`
	RestoreRequest
	RequestedBy Actor `json:"requested_by,omitzero"`
}

// Keys returns the backup.
func (s RestoreSpec) Keys() []string { return []string{s.BackupID} }

// RestoreStatus is the observed state of a restore.
type RestoreStatus struct {
	State      JobState   `json:"state"` // empty: pending, and not recorded yet
	Seq        uint64     `json:"seq"`   // of the event that reported State
	Attempts   int        `json:"attempts,omitempty"`
	StartedAt  *time.Time `json:"started_at,omitempty"` // of the last attempt
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	Message    string     `json:"message,omitempty"`
}

// RestoreView is a restore as clients receive it.
type RestoreView struct {
	RestoreID  string     `json:"restore_id"`
	VolumeID   string     `json:"volume_id"`
	Mode       string     `json:"mode"`
	State      JobState   `json:"state"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	Message    string     `json:"message"`
}

// BackupStateOf returns the state of a backup as clients receive it.
func BackupStateOf(b Backup) JobState {
	if b.Meta.Deleted {
		return JobDeleting
	}
	return jobState(b.Status.State)
}

// RestoreStateOf returns the state of a restore as clients receive it.
func RestoreStateOf(r Restore) JobState { return jobState(r.Status.State) }

func jobState(s JobState) JobState {
	if s == "" {
		return JobPending
	}
	return s
}

// ArchiveKey returns the key of a backup's archive in its target.
func ArchiveKey(backupID string) string { return backupID + ".tar.zst" }

// The limits of the skipped entries of a backup that are stored, and of those that lists
// show. The bytes are those of the paths as JSON, where a tenant chooses names that are six
// times as long. Each record that a list reads stays small.
const (
	MaxSkippedBytes    = 256 << 10
	ListedSkipped      = 10
	ListedSkippedBytes = 2 << 10
)

// FirstSkipped returns the first entries of a list: at most n, whose paths have at most so
// many bytes as JSON.
func FirstSkipped(list []Skipped, n, bytes int) []Skipped {
	for i, s := range list {
		escaped, _ := json.Marshal(s.Path) // text: it cannot fail
		if bytes -= len(escaped); bytes < 0 || i == n {
			return list[:i]
		}
	}
	return list
}

// MaxBackups limits the backups of a host.
const MaxBackups = 10_000

// KeptRestores is how many finished restores of a backup are kept.
const KeptRestores = 20

// ArchiveOf identifies the archive of a completed backup.
func ArchiveOf(s BackupStatus) SnapshotArchive {
	return SnapshotArchive{Checksum: s.Checksum, Size: s.Size, Bytes: s.Unpacked}
}

// SmallestLimit returns the smallest limit of a volume and of the containers that use
// it, in bytes; 0: none.
func SmallestLimit(v VolumeSpec, containers []ContainerSpec) int64 {
	limit := v.SizeLimit
	for _, c := range containers {
		if disk := c.Limits.Disk; disk > 0 && (limit == 0 || disk < limit) {
			limit = disk
		}
	}
	return limit
}

// Transition emits the transition of a backup whose state has changed, see package store.
func (s *BackupStatus) Transition(from Backup, emit func(Event) Event) {
	if s.State == from.Status.State {
		return
	}
	actor := from.Spec.RequestedBy
	if s.State == JobDeleting {
		actor = from.Spec.DeletedBy
	}
	s.Seq = emit(Event{Event: EventBackup, Data: string(s.State), Backup: from.Meta.ID, Volume: from.Spec.VolumeID, Actor: actor}).Seq
}

// Transition emits the transition of a restore whose state has changed, see package store.
func (s *RestoreStatus) Transition(from Restore, emit func(Event) Event) {
	if s.State != from.Status.State {
		s.Seq = emit(Event{Event: EventRestore, Data: string(s.State), Backup: from.Spec.BackupID, Restore: from.Meta.ID,
			Volume: from.Spec.VolumeID, Actor: from.Spec.RequestedBy}).Seq
	}
}
