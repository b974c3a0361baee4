package v1

import (
	"net/netip"
	"net/url"
	"slices"
	"time"
)

// Pull is a download of a URL into a volume, which runs in the background.
type Pull = Object[PullSpec, PullStatus]

// PullSpec is the desired state of a download. Its id is a UUID.
type PullSpec struct {
	VolumeID string `json:"volume_id"`
	URL      string `json:"url"`
	Path     string `json:"path"`               // in the volume
	Checksum string `json:"checksum,omitempty"` // sha256:<hex>; empty: none
	Cancel   bool   `json:"cancel,omitempty"`

	// Who requested the download, and who its end.
	RequestedBy Actor `json:"requested_by,omitzero"`
	CancelledBy Actor `json:"cancelled_by,omitzero"`
}

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

// Clone returns a deep copy of s.
func (s PullSpec) Clone() PullSpec { return s }

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

// Clone returns a deep copy of s.
func (s PullStatus) Clone() PullStatus {
	s.Total, s.FinishedAt = clonePointer(s.Total), clonePointer(s.FinishedAt)
	return s
}

// nonPublic are the networks that are not on the Internet, or lead to such ones.
var nonPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	"5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8")

func prefixes(list ...string) (networks []netip.Prefix) {
	for _, text := range list {
		networks = append(networks, netip.MustParsePrefix(text))
	}
	return networks
}

// IsPublic reports whether an address is one of the public Internet. An IPv4 address in
// IPv6 notation is not.
func IsPublic(a netip.Addr) bool {
	a = a.WithZone("")
	return a.IsValid() && !a.Is4In6() && !slices.ContainsFunc(nonPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}
