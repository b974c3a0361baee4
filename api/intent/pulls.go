package intent

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"

	v1 "berth/api/v1"
	"berth/store"
)

// The limits of downloads.
const (
	maxURL       = 4096 // bytes
	maxOpenPulls = 100  // of one volume that have not ended
)

var checksum = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// CheckPull adds the errors of a download to f. Unless the configuration allows private ones, a literal
// address in the URL must be public; a name is resolved when the download connects.
func CheckPull(f *v1.FieldErrors, spec v1.PullRequest, files v1.FilesConfig) {
	u, err := url.Parse(spec.URL)
	switch {
	case err == nil && u.Port() != "" && !isPort(u.Port()):
		f.Add("url", "must have a port between 1 and 65535")
	case err != nil || len(spec.URL) > maxURL || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		f.Add("url", "must be an http or https URL of at most %d bytes", maxURL)
	case u.User != nil:
		f.Add("url", "must not have a user name or password: they would be stored and listed")
	default:
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && !files.PullPrivate && !v1.IsPublic(a) {
			f.Add("url", "must not be a private, loopback, link-local or other non-public address")
		}
	}
	if spec.Checksum != "" && !checksum.MatchString(spec.Checksum) {
		f.Add("checksum", "must be sha256: and 64 lowercase hexadecimal digits")
	}
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// CreatePull stores a download and returns its id. The code is TooManyPulls if too many
// downloads of the volume have not ended.
func CreatePull(s store.Writer, spec v1.PullSpec) (id string, err error) {
	id = NewID()
	return id, s.Update(func(tx *store.Tx) error {
		if _, err := getVolume(tx, spec.VolumeID); err != nil {
			return err
		}
		pulls := store.Pulls.ListBy(tx, spec.VolumeID)
		open := slices.DeleteFunc(pulls, func(p v1.Pull) bool { return p.Status.State.Final() })
		if len(open) >= maxOpenPulls {
			return v1.Errorf(v1.TooManyPulls, "%d downloads into this volume have not ended: cancel some, or send the request later", len(open))
		}
		spec.RequestedBy = tx.Actor()
		return store.Pulls.Create(tx, id, spec)
	})
}

// CancelPull requests the end of a download. One that has ended stays as it is. Its
// refusal is the code PullNotFound.
func CancelPull(s store.Writer, volume, id string) error {
	return s.Update(func(tx *store.Tx) error {
		p, err := store.Pulls.Get(tx, id)
		if errors.Is(err, store.ErrNotFound) || err == nil && p.Spec.VolumeID != volume {
			return v1.Errorf(v1.PullNotFound, "Download not found")
		}
		if err != nil || p.Status.State.Final() || p.Spec.Cancel {
			return err
		}
		return store.Pulls.SetSpec(tx, id, func(spec *v1.PullSpec) error {
			spec.Cancel, spec.CancelledBy = true, tx.Actor()
			return nil
		})
	})
}
