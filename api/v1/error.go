package v1

import (
	"fmt"
	"strings"
	"time"
)

// Error is a refusal that a client receives. Its Message never holds an internal path
// or a secret.
type Error struct {
	Code    Code
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Is makes errors.Is(err, &Error{Code: c}) true for every error of that code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// RetryError is a refusal that ends by itself.
type RetryError struct {
	Refused *Error
	After   time.Duration // when the same request may succeed
}

// Error returns the message of the refusal.
func (e *RetryError) Error() string { return e.Refused.Error() }

// Unwrap returns the refusal.
func (e *RetryError) Unwrap() error { return e.Refused }

// Errorf returns an Error.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Code is the stable, machine-readable name of a refusal, sent in the header
// X-Error-Code. Package server maps each to a status.
type Code string

// The codes of refusals that do not come from HTTP itself.
const (
	InvalidRequest    Code = "invalid_request"
	InvalidPath       Code = "invalid_path"
	InvalidArchive    Code = "invalid_archive"
	ContainerNotFound Code = "container_not_found"
	VolumeNotFound    Code = "volume_not_found"
	PortNotFound      Code = "port_not_found"
	TokenNotFound     Code = "token_not_found"
	PullNotFound      Code = "pull_not_found"
	PullsDisabled     Code = "pulls_disabled"
	TooManyPulls      Code = "too_many_pulls"
	PathNotFound      Code = "path_not_found"
	BackupNotFound    Code = "backup_not_found"
	PolicyNotFound    Code = "backup_policy_not_found"
	NotCompleted      Code = "backup_not_completed"
	ScheduleNotFound  Code = "schedule_not_found"
	TooManySchedules  Code = "too_many_schedules"
	BackupInUse       Code = "backup_in_use"
	BackupExists      Code = "backup_exists"
	TooManyBackups    Code = "too_many_backups"
	BackupsFull       Code = "backups_full"
	NoPorts           Code = "no_available_ports"
	PortExists        Code = "port_exists"
	PortNotInPool     Code = "port_not_in_pool"
	StillInstalling   Code = "container_installing"
	ContainerExists   Code = "container_exists"
	ContainerDeleting Code = "container_deleting"
	NotRunning        Code = "container_not_running"
	InputFull         Code = "container_input_full"
	PortBound         Code = "port_bound"
	VolumeInUse       Code = "volume_in_use"
	VolumeRestoring   Code = "volume_restoring"
	Transferring      Code = "container_transferring"
	TransferNotFound  Code = "transfer_not_found"
	ArrivalNotFound   Code = "arrival_not_found"
	TooManyArrivals   Code = "too_many_arrivals"
	AmbiguousVolume   Code = "ambiguous_volume_id"
	FileExists        Code = "file_exists"
	Precondition      Code = "precondition_failed"
	FileDenied        Code = "file_denied"
	SizeLimit         Code = "size_limit_exceeded"
	ImageNotFound     Code = "image_not_found"
	StoreFailed       Code = "store_failed"
	StoreDiskFull     Code = "store_disk_full"
	WriteDenied       Code = "write_denied"
	Unavailable       Code = "unavailable"
	EngineUnavailable Code = "engine_unavailable"
	DiskFull          Code = "disk_full"
	TooManyTokens     Code = "too_many_tokens"
	TooManySessions   Code = "too_many_sessions"
	TooManyStarts     Code = "too_many_starts"
	TooManyJobs       Code = "too_many_jobs"
	TooManyOperations Code = "too_many_operations"
	TooManyKeys       Code = "too_many_idempotency_keys"
	KeyReused         Code = "idempotency_key_reused"
	KeyInUse          Code = "idempotency_key_in_use"
	OutcomeUnknown    Code = "idempotency_outcome_unknown"
	Unauthorized      Code = "unauthorized"
	ScopeDenied       Code = "scope_denied"
)

// The refusals whose text the interface fixes.
var (
	ErrContainerNotFound = &Error{ContainerNotFound, "Container not found"}
	ErrVolumeNotFound    = &Error{VolumeNotFound, "Volume not found"}
	ErrPortNotFound      = &Error{PortNotFound, "Port not found in pool"}
	ErrInvalidPath       = &Error{InvalidPath, "Invalid path: path traversal detected"}
	ErrStillInstalling   = &Error{StillInstalling, "Cannot rebind network while container is installing"}
	ErrPortExists        = &Error{PortExists, "Port already exists in pool"}
	ErrPortNotInPool     = &Error{PortNotInPool, "Invalid port binding: port not in network pool"}
	ErrImageNotFound     = &Error{ImageNotFound, "Failed to create Docker container: image not found"}
	ErrStoreFailed       = &Error{StoreFailed, "Database operation failed"}
	ErrStoreDiskFull     = &Error{StoreDiskFull, "Database operation failed"}
	ErrWriteDenied       = &Error{WriteDenied, "Failed to write file: permission denied"}
	ErrNoPorts           = &Error{NoPorts, "No available ports in pool"}
	ErrContainerExists   = &Error{ContainerExists, "Container already exists"}
	ErrVolumeRestoring   = &Error{VolumeRestoring, "Volume is being restored"}
	ErrTransferring      = &Error{Transferring, "Container is being transferred"}
	ErrTransferNotFound  = &Error{TransferNotFound, "Transfer not found"}
	ErrArrivalNotFound   = &Error{ArrivalNotFound, "Arrival not found"}
	ErrAmbiguousVolume   = &Error{AmbiguousVolume, "Ambiguous volume id"}
	ErrNotRunning        = &Error{NotRunning, "Container is not running"}
	ErrInputFull         = &Error{InputFull, "Container does not read its input"}
	ErrSizeLimit         = &Error{SizeLimit, "Volume size limit exceeded"}
	ErrEngineUnavailable = &Error{EngineUnavailable, "the container engine does not answer; send the request again once it does"}
	ErrBackupNotFound    = &Error{BackupNotFound, "Backup not found"}
	ErrBackupExists      = &Error{BackupExists, "Backup already exists, of another volume or with other parameters"}
	ErrPolicyNotFound    = &Error{PolicyNotFound, "Backup policy not found"}
	ErrScheduleNotFound  = &Error{ScheduleNotFound, "Schedule not found"}
	ErrNotCompleted      = &Error{NotCompleted, "Backup is not completed"}
	ErrDiskFull          = &Error{DiskFull, "Failed to write file: no space left on the host"}
)

// FieldError is one error of a field of a request or of the configuration.
type FieldError struct {
	Key     string `json:"key"` // such as ports[1].port or server.port; empty: the configuration file as a whole
	Message string `json:"message"`
}

// String returns "key: message".
func (f FieldError) String() string {
	if f.Key == "" {
		return f.Message
	}
	return f.Key + ": " + f.Message
}

// FieldErrors is an error that lists everything that is wrong with a request or with
// the configuration. As a *Error it has the code InvalidRequest.
type FieldErrors []FieldError

// The limits of the errors of a request, whose body of a megabyte may have a million.
const (
	maxShownErrors = 20
	maxKeptErrors  = 100
)

// Full reports whether Add keeps no more errors.
func (f FieldErrors) Full() bool { return len(f) >= maxKeptErrors }

// Add adds the error of a field of a request, such as "ports[1].port". Only the
// first error of a field is kept, and none of the fields inside it.
func (f *FieldErrors) Add(key, format string, args ...any) {
	if f.Full() {
		return
	}
	for _, known := range *f {
		if inside, ok := strings.CutPrefix(key, known.Key); ok && (inside == "" || inside[0] == '.' || inside[0] == '[') {
			return
		}
	}
	*f = append(*f, FieldError{Key: key, Message: fmt.Sprintf(format, args...)})
}

// check adds the error of a key of the configuration unless ok.
func (f *FieldErrors) check(ok bool, key, format string, args ...any) {
	if !ok {
		*f = append(*f, FieldError{Key: key, Message: fmt.Sprintf(format, args...)})
	}
}

// Any reports whether there is an error.
func (f FieldErrors) Any() bool { return len(f) > 0 }

// Err returns f, or nil if there is no error.
func (f FieldErrors) Err() error {
	if !f.Any() {
		return nil
	}
	return f
}

// Error joins all kept errors.
func (f FieldErrors) Error() string { return f.text(len(f)) }

// Unwrap returns the refusal of a request, which shows the first errors and the
// number of the others.
func (f FieldErrors) Unwrap() error {
	return &Error{Code: InvalidRequest, Message: f.text(maxShownErrors)}
}

// text joins at most shown errors.
func (f FieldErrors) text(shown int) string {
	shown = min(shown, len(f))
	texts := make([]string, shown)
	for i := range texts {
		texts[i] = f[i].String()
	}
	if more := len(f) - shown; more > 0 && f.Full() {
		texts = append(texts, fmt.Sprintf("and at least %d more", more))
	} else if more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}
