package v1

import (
	"cmp"
	"net/url"
	"strings"
	"time"
)

// Pull is a download of a URL into a volume, which runs in the background.
type Pull = Object[PullSpec, PullStatus]

// PullSpec is the desired state of a download. Its id is a UUID.
type PullSpec struct {
	VolumeID string `json:"volume_id"`
	PullRequest
	Cancel  bool `json:"cancel,omitempty"`
	Limited bool `json:"limited,omitempty"` // the token is limited to containers: denied_files are refused

	// Who requested the download, and who its end.
	RequestedBy Actor `json:"requested_by,omitzero"`
	CancelledBy Actor `json:"cancelled_by,omitzero"`
}

// PullRequest is the body of a request for a download.
type PullRequest struct {
	URL      string `json:"url" api:"required"`  // http or https
	Path     string `json:"path" api:"required"` // of the file in the volume; with a slash at the end: the folder of the file
	Checksum string `json:"checksum,omitempty"`  // sha256:<hex>; empty: none
}

// FileName returns the last part of the path of the URL, in the form of EscapePath. It is empty if
// there is none.
func (r PullRequest) FileName() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return ""
	}
	return EscapePath(u.Path[strings.LastIndex(u.Path, "/")+1:])
}

// PullView is a download as clients receive it.
type PullView struct {
	PullID   string       `json:"pull_id"`
	URL      string       `json:"url"`
	Path     string       `json:"path"`
	State    PullState    `json:"state"`
	Progress PullProgress `json:"progress"`
	Message  NullString   `json:"message"` // why it failed
}

// PullProgress is how much of a download was received.
type PullProgress struct {
	Bytes int64  `json:"bytes"`
	Total *int64 `json:"total"` // nil: unknown
}

// ViewOfPull returns a download as clients receive it.
func ViewOfPull(p Pull) PullView {
	return PullView{PullID: p.Meta.ID, URL: p.Spec.RedactedURL(), Path: p.Spec.Path, State: cmp.Or(p.Status.State, PullPending),
		Progress: PullProgress{p.Status.Bytes, p.Status.Total}, Message: NullString(p.Status.Message)}
}

// Keys returns the volume.
func (s PullSpec) Keys() []string { return []string{s.VolumeID} }

// RedactedURL returns the URL with *** in place of its query, which is often a signature,
// of its fragment, and of a user name and password.
func (s PullSpec) RedactedURL() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "***"
	}
	user, query, fragment := "", "", ""
	if u.User != nil {
		user = "***@"
	}
	if u.RawQuery != "" {
		query = "?***"
	}
	if u.Fragment != "" {
		fragment = "#***"
	}
	return u.Scheme + "://" + user + u.Host + u.EscapedPath() + query + fragment
}

// PullState is the state of a download.
type PullState string

// The states of a download. An empty PullState is PullPending.
const (
	PullPending   PullState = "pending"
	PullRunning   PullState = "running"
	PullCompleted PullState = "completed"
	PullFailed    PullState = "failed"
	PullCancelled PullState = "cancelled"
)

// PullStates returns all states.
func PullStates() []PullState {
	return []PullState{PullPending, PullRunning, PullCompleted, PullFailed, PullCancelled}
}

// Final reports whether a download in this state has ended.
func (s PullState) Final() bool { return s == PullCompleted || s == PullFailed || s == PullCancelled }

// PullStatus is the observed state of a download.
type PullStatus struct {
	State      PullState  `json:"state,omitempty"`
	Bytes      int64      `json:"bytes,omitempty"` // received in the current attempt
	Total      *int64     `json:"total,omitempty"` // bytes that the server announced; nil: unknown
	Attempts   int        `json:"attempts,omitempty"`
	Message    string     `json:"message,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

// Transition emits the transition of a download whose state has changed, see package store.
func (s *PullStatus) Transition(from Pull, emit func(Event) Event) {
	if s.State == from.Status.State {
		return
	}
	actor := from.Spec.RequestedBy
	if s.State == PullCancelled {
		actor = from.Spec.CancelledBy
	}
	emit(Event{Event: EventPull, Data: string(s.State), Pull: from.Meta.ID, Volume: from.Spec.VolumeID, Actor: actor})
}
