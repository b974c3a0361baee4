package v1

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Transfer moves a container of this node to another one. Its id is a UUID.
type Transfer = Object[TransferSpec, TransferStatus]

// TransferSpec is the desired state of a transfer.
type TransferSpec struct {
	Container string `json:"container"`
	UID       string `json:"uid"` // of the container
	VolumeID  string `json:"volume_id"`
	TransferRequest

	Cancels uint64 `json:"cancels,omitempty"` // requests to cancel it
	Gone    bool   `json:"gone,omitempty"`    // the destination is gone, as an operator has declared

	RequestedBy Actor `json:"requested_by,omitzero"`
}

// Keys returns the container.
func (s TransferSpec) Keys() []string { return []string{s.Container} }

// TransferRequest is the body of a request for a transfer.
type TransferRequest struct {
	URL   string         `json:"url" api:"required"`   // of the other daemon, such as https://node2:8070
	Token string         `json:"token" api:"required"` // minted there with ScopeArrive
	Ports []TransferPort `json:"ports,omitempty"`      // a port that is not here stays the same
	Start *bool          `json:"start,omitempty"`      // whether the container is started there; nil: if it is to run here
	Keep  *Duration      `json:"keep,omitempty"`       // how long the volume stays here afterwards; nil: 24h

	RandomPorts bool  `json:"random_ports,omitempty"` // each port is replaced by a free one of the pool there
	Bandwidth   int64 `json:"bandwidth,omitempty"`    // bytes a second, besides the configured limit; 0: no other one
	Backups     bool  `json:"backups,omitempty"`      // completed backups of the volume go with it
}

// TransferPort is a port of a container, and the one that replaces it.
type TransferPort struct {
	IP       string      `json:"ip" api:"required"`
	Port     int         `json:"port" api:"required"`
	Protocol string      `json:"protocol" api:"required"`
	To       PortAddress `json:"to" api:"required"`
}

// PortAddress is an address and a port of a node.
type PortAddress struct {
	IP   string `json:"ip" api:"required"`
	Port int    `json:"port" api:"required"`
}

// TransferState is the state of a transfer. Each change of it is an event.
type TransferState string

// The states of a transfer.
const (
	TransferPending     TransferState = "pending"
	TransferCopying     TransferState = "copying"      // the container runs
	TransferStopping    TransferState = "stopping"     // the container is being stopped, and does not start by itself
	TransferFinishing   TransferState = "finishing"    // the last changes are sent
	TransferHandingOver TransferState = "handing_over" // the container starts here no more unless the destination has cancelled
	TransferCompleted   TransferState = "completed"
	TransferFailed      TransferState = "failed"
	TransferCancelled   TransferState = "cancelled"
)

// TransferStates returns all states of a transfer.
func TransferStates() []TransferState {
	return []TransferState{TransferPending, TransferCopying, TransferStopping, TransferFinishing, TransferHandingOver,
		TransferCompleted, TransferFailed, TransferCancelled}
}

// Finished reports whether the transfer has ended.
func (s TransferState) Finished() bool {
	return s == TransferCompleted || s == TransferFailed || s == TransferCancelled
}

// TransferStatus is the observed state of a transfer.
type TransferStatus struct {
	State    TransferState    `json:"state"` // empty: pending, and not recorded yet
	Progress TransferProgress `json:"progress"`
	Message  string           `json:"message,omitempty"` // why it failed or was cancelled, or what the next attempt waits for

	Ports      []TransferPort `json:"ports,omitempty"`      // that the destination has chosen
	Since      time.Time      `json:"since,omitzero"`       // files that have changed since then have to be sent, whatever they look like
	Began      time.Time      `json:"began,omitzero"`       // of this round, by which a later attempt finds what the ones before have sent
	Arrived    int64          `json:"arrived,omitempty"`    // in this round; see Sent
	Digest     string         `json:"digest,omitempty"`     // of the tree that was sent
	Failures   int            `json:"failures,omitempty"`   // attempts that failed since something was sent last
	FailedAt   time.Time      `json:"failed_at,omitzero"`   // of the first of them
	RetryAt    time.Time      `json:"retry_at,omitzero"`    // of the next attempt
	Unanswered uint64         `json:"unanswered,omitempty"` // the last request to cancel that the destination has not answered
	Remove     bool           `json:"remove,omitempty"`     // the destination has to be asked to remove what has arrived

	Backups     []string `json:"backups,omitempty"`      // that go with it; not known before the last round has ended
	BackupsKept []string `json:"backups_kept,omitempty"` // of a completed transfer: those that stay here

	StartedAt   *time.Time `json:"started_at,omitempty"`
	FinishedAt  *time.Time `json:"finished_at,omitempty"`
	VolumeUntil *time.Time `json:"volume_until,omitempty"` // when the volume is deleted; nil: it stays, or is deleted
}

// TransferProgress is how much of a transfer was sent.
type TransferProgress struct {
	Bytes int64 `json:"bytes"` // of files, in this round, and of archives of backups
	Total int64 `json:"total"` // of the volume, as last measured, and of those archives
	Round int   `json:"round"` // from 1
}

// TransferView is a transfer as clients receive it.
type TransferView struct {
	TransferID string           `json:"transfer_id"`
	Container  string           `json:"container"`
	VolumeID   string           `json:"volume_id"`
	URL        string           `json:"url"`
	State      TransferState    `json:"state"`
	Progress   TransferProgress `json:"progress"`
	Ports      []TransferPort   `json:"ports"`

	Backups     []string `json:"backups"`      // that go with it; empty until the container is stopped
	BackupsKept []string `json:"backups_kept"` // of the volume, that stay here; empty until the transfer is completed with backups

	Message    string     `json:"message"`
	CreatedAt  int64      `json:"created_at"`  // Unix seconds
	StartedAt  *time.Time `json:"started_at"`  // when it began
	FinishedAt *time.Time `json:"finished_at"` // when it ended; nil: it has not
}

// MarshalJSON writes every field.
func (t TransferView) MarshalJSON() ([]byte, error) { return marshalWhole(t) }

// TransferStateOf returns the state of a transfer.
func TransferStateOf(t Transfer) TransferState { return cmp.Or(t.Status.State, TransferPending) }

// ViewOfTransfer returns a transfer as clients receive it.
func ViewOfTransfer(t Transfer) TransferView {
	ports := t.Spec.Ports
	if t.Spec.RandomPorts {
		ports = t.Status.Ports
	}
	return TransferView{TransferID: t.Meta.ID, Container: t.Spec.Container, VolumeID: t.Spec.VolumeID, URL: t.Spec.URL,
		State: TransferStateOf(t), Progress: t.Status.Progress, Ports: ports, Message: t.Status.Message,
		Backups: t.Status.Backups, BackupsKept: t.Status.BackupsKept,
		CreatedAt: t.Meta.CreatedAt.Unix(), StartedAt: t.Status.StartedAt, FinishedAt: t.Status.FinishedAt}
}

// Transition emits the transition of a transfer.
func (s *TransferStatus) Transition(from Transfer, emit func(Event) Event) {
	if s.State != from.Status.State {
		e := Event{Event: EventTransfer, Data: string(s.State), Container: from.Spec.Container, Transfer: from.Meta.ID,
			Actor: from.Spec.RequestedBy}
		if s.State == TransferCompleted {
			e.MovedTo = from.Spec.URL
		}
		emit(e)
	}
}

// Arrival is a container of another node that is being moved to this one. Its id is that of the transfer.
// Once it has ended, it is kept so that each later question has the same answer.
type Arrival = Object[ArrivalSpec, ArrivalStatus]

// ArrivalSpec is what arrives, and how it has ended.
type ArrivalSpec struct {
	ArrivalRequest
	Ports       []TransferPort  `json:"ports,omitempty"`   // that were chosen
	Dropped     []ArrivalBackup `json:"dropped,omitempty"` // that were announced before: their archives may be here
	Ended       ArrivalState    `json:"ended,omitempty"`   // ArrivalCommitted or ArrivalCancelled; empty: neither
	EndedAt     time.Time       `json:"ended_at,omitzero"`
	RequestedBy Actor           `json:"requested_by,omitzero"`
}

// Archives returns the backups whose archives may have arrived in TargetLocal.
func (s ArrivalSpec) Archives() (ids []string) {
	for _, b := range slices.Concat(s.Backups, s.Dropped) {
		if b.Spec.Target == TargetLocal {
			ids = append(ids, b.BackupID)
		}
	}
	return ids
}

// Keys returns the container.
func (s ArrivalSpec) Keys() []string { return []string{s.Container.InternalID} }

// ArrivalRequest is the body of the request that announces what arrives.
type ArrivalRequest struct {
	ArrivalID   string            `json:"arrival_id" api:"required"` // a UUID
	Container   ContainerSpec     `json:"container" api:"required"`  // with its id and its install script
	Volume      VolumeSpec        `json:"volume" api:"required"`     // its id is the volume_id of the container
	Bytes       int64             `json:"bytes"`                     // of the volume, as last measured
	Policy      *PolicyView       `json:"policy,omitempty"`          // of backups of the volume
	Schedules   []ArrivalSchedule `json:"schedules,omitempty"`
	Backups     []ArrivalBackup   `json:"backups,omitempty"`
	RandomPorts bool              `json:"random_ports,omitempty"` // the ports of the container are to be replaced by free ones of the pool
	Stopped     bool              `json:"stopped,omitempty"`      // the container is stopped until the transfer ends
}

// Priority returns that of what is done for an arrival: nobody waits for it while the container runs.
func (r ArrivalRequest) Priority() Priority {
	if r.Stopped {
		return NormalPriority
	}
	return LowPriority
}

// Priority is that of work on files, for processors and disks.
type Priority int

// The priorities.
const (
	LowPriority    Priority = iota // all others go first
	NormalPriority                 // that of the process
)

// ArrivalSchedule is a schedule of a container that arrives.
type ArrivalSchedule struct {
	Name string       `json:"name" api:"required"`
	Spec ScheduleView `json:"spec" api:"required"`
}

// ArrivalBackup is a completed backup of a volume that arrives. An archive in TargetLocal is sent; one in TargetS3 has to be in the
// bucket of both nodes.
type ArrivalBackup struct {
	BackupID  string       `json:"backup_id" api:"required"`
	CreatedAt time.Time    `json:"created_at" api:"required"`
	Spec      BackupSpec   `json:"spec" api:"required"`
	Status    BackupStatus `json:"status" api:"required"`
}

// ArchiveBytes returns the bytes of the archives of backups that arrive in a target.
func ArchiveBytes(backups []ArrivalBackup, t Target) (n int64) {
	for _, b := range backups {
		if b.Spec.Target == t {
			n += b.Status.Size
		}
	}
	return n
}

// ArrivalState is the state of an arrival.
type ArrivalState string

// The states of an arrival.
const (
	ArrivalPreparing ArrivalState = "preparing" // its volume is being created, or its image pulled
	ArrivalReceiving ArrivalState = "receiving"
	ArrivalRefused   ArrivalState = "refused" // its image is not to be had
	ArrivalCommitted ArrivalState = "committed"
	ArrivalCancelled ArrivalState = "cancelled"
)

// ArrivalStatus is the observed state of an arrival.
type ArrivalStatus struct {
	ImagePresent bool   `json:"image_present,omitempty"`
	Refused      string `json:"refused,omitempty"` // why the image is not to be had
	Cleaned      bool   `json:"cleaned,omitempty"` // it has ended, and archives that belong to no backup are removed
}

// ArrivalView is an arrival as clients receive it.
type ArrivalView struct {
	ArrivalID string           `json:"arrival_id"`
	Container string           `json:"container"`
	VolumeID  string           `json:"volume_id"`
	State     ArrivalState     `json:"state"`
	Ports     []TransferPort   `json:"ports"`   // that were chosen, if random ones were requested
	Backups   []string         `json:"backups"` // whose archives have arrived; empty once the arrival has ended
	Stored    map[string]int64 `json:"stored"`  // bytes of the archives that have not arrived as a whole, by backup
	Message   string           `json:"message"`
	CreatedAt int64            `json:"created_at"` // Unix seconds
}

// MarshalJSON writes empty lists for those that are nil.
func (a ArrivalView) MarshalJSON() ([]byte, error) { return marshalWhole(a) }

// ViewOfArrival returns an arrival as clients receive it. ready is whether its volume is there.
func ViewOfArrival(a Arrival, ready func(volume string) bool) ArrivalView {
	v := ArrivalView{ArrivalID: a.Meta.ID, Container: a.Spec.Container.InternalID, VolumeID: a.Spec.Container.VolumeID, State: a.Spec.Ended,
		Ports: a.Spec.Ports, CreatedAt: a.Meta.CreatedAt.Unix()}
	switch {
	case v.State != "":
	case a.Status.Refused != "":
		v.State, v.Message = ArrivalRefused, a.Status.Refused
	case a.Status.ImagePresent && ready(v.VolumeID):
		v.State = ArrivalReceiving
	default:
		v.State = ArrivalPreparing
	}
	return v
}

// CommitRequest is the body of the request that ends an arrival by creating its container.
type CommitRequest struct {
	Digest string `json:"digest" api:"required"` // of the tree of the source
	Start  bool   `json:"start"`                 // the container is started
}

// LeastBandwidth is the least limit of the bytes a second of transfers: a node ends a request in which nothing arrives.
const LeastBandwidth = 64 << 10

// TransferRetention is how long ended transfers are listed, and ArrivalRetention how long ended arrivals answer.
const (
	TransferRetention = 7 * 24 * time.Hour
	ArrivalRetention  = 30 * 24 * time.Hour
)

// The prefixes of what reserves a volume besides a restore.
const (
	transferPrefix = "transfer/"
	arrivalPrefix  = "arrival/"
)

// ByTransfer returns what reserves the volume of a transfer.
func ByTransfer(id string) string { return transferPrefix + id }

// ByArrival returns what reserves the volume of an arrival.
func ByArrival(id string) string { return arrivalPrefix + id }

// ReservedBy returns the refusal of changes of a volume that is reserved; nil: by is empty.
func ReservedBy(by string) error {
	switch {
	case by == "":
		return nil
	case IsTransfer(by):
		return ErrTransferring
	}
	return ErrVolumeRestoring
}

// IsDeparture reports whether a transfer to another node has reserved a volume.
func IsDeparture(by string) bool { return strings.HasPrefix(by, transferPrefix) }

// IsTransfer reports whether a transfer or an arrival has reserved a volume, and not a restore.
func IsTransfer(by string) bool {
	return IsDeparture(by) || strings.HasPrefix(by, arrivalPrefix)
}
