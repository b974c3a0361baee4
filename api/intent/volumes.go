package intent

import (
	"cmp"
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	v1 "berth/api/v1"
	"berth/store"
)

var (
	fullUUID   = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	uuidPrefix = regexp.MustCompile(`^[0-9a-f]{8}$`)
)

// maxName limits the name of a volume, in characters.
const maxName = 128

// CheckVolume adds every error of a volume's spec to f, and makes empty labels nil. claims are those of the
// configuration: the one that spec names limits its size.
func CheckVolume(f *v1.FieldErrors, spec *v1.VolumeSpec, claims map[string]v1.VolumeClaim) {
	if spec.SizeLimit < 0 {
		f.Add("size_limit", "must not be negative")
	}
	claim, known := claims[spec.Storage]
	if spec.Storage != "" && !known {
		f.Add("storage", "must be left out, or a key of kubernetes.claims in the configuration of the node")
	}
	spec.SizeLimit = cmp.Or(spec.SizeLimit, int64(claim.SizeLimit))
	if claim.SizeLimit > 0 && spec.SizeLimit > int64(claim.SizeLimit) {
		f.Add("size_limit", "must be at most %d: kubernetes.claims.%s.size_limit", int64(claim.SizeLimit), spec.Storage)
	}
	spec.Labels = nilIfEmpty(spec.Labels)
	CheckVolumeChange(f, v1.VolumeChange{Name: &spec.Name, Labels: &spec.Labels})
}

// CheckVolumeChange adds every error of a change to f.
func CheckVolumeChange(f *v1.FieldErrors, c v1.VolumeChange) {
	if c.Name != nil && (utf8.RuneCountInString(*c.Name) > maxName || strings.ContainsFunc(*c.Name, isNotPrint)) {
		f.Add("name", "must be at most %d printable characters", maxName)
	}
	if c.Labels != nil {
		checkLabels(f, *c.Labels)
	}
}

func isNotPrint(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

// CreateVolume requests a new volume, whose spec CheckVolume has accepted, and returns
// its id.
func CreateVolume(s store.Writer, spec v1.VolumeSpec) (string, error) {
	id := NewID()
	return id, s.Update(func(tx *store.Tx) error { return store.Volumes.Create(tx, id, spec) })
}

// ChangeVolume changes a volume. CheckVolumeChange has accepted the change. Its refusals
// are v1.ErrVolumeNotFound and v1.ErrTransferring.
func ChangeVolume(s store.Writer, id string, c v1.VolumeChange) error {
	return s.Update(func(tx *store.Tx) error {
		if err := checkChangeable(tx, id); err != nil {
			return err
		}
		return store.Volumes.SetSpec(tx, id, func(spec *v1.VolumeSpec) error {
			if c.Name != nil {
				spec.Name = *c.Name
			}
			if c.Labels != nil {
				spec.Labels = nilIfEmpty(*c.Labels)
			}
			return nil
		})
	})
}

// IsID reports whether a text is a UUID as NewID writes it.
func IsID(text string) bool { return fullUUID.MatchString(text) }

// NewID returns a random UUID (version 4).
func NewID() string { return uuid.NewString() }

// FindVolume returns the volume whose UUID is text, or begins with its 8 characters.
// Its refusals are v1.ErrVolumeNotFound, also for a volume that is being deleted, and
// v1.ErrAmbiguousVolume.
func FindVolume(tx *store.Tx, text string) (v1.Volume, error) {
	text = strings.ToLower(text)
	switch {
	case fullUUID.MatchString(text):
		return getVolume(tx, text)
	case !uuidPrefix.MatchString(text):
		return v1.Volume{}, v1.ErrVolumeNotFound
	}
	var found *v1.Volume
	for _, id := range store.Volumes.IDsBeginning(tx, text) {
		o, err := getVolume(tx, id)
		if errors.Is(err, v1.ErrVolumeNotFound) {
			continue
		}
		if err != nil {
			return v1.Volume{}, err
		}
		if found != nil {
			return v1.Volume{}, v1.ErrAmbiguousVolume
		}
		found = &o
	}
	if found == nil {
		return v1.Volume{}, v1.ErrVolumeNotFound
	}
	return *found, nil
}

func getVolume(tx *store.Tx, id string) (v1.Volume, error) {
	o, err := store.Volumes.Get(tx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && o.Meta.Deleted {
		return v1.Volume{}, v1.ErrVolumeNotFound
	}
	return o, err
}

// checkChangeable returns why what belongs to a volume cannot be changed: the volume does not exist, or a transfer has announced it as
// it is.
func checkChangeable(tx *store.Tx, volume string) error {
	if _, err := getVolume(tx, volume); err != nil {
		return err
	}
	return checkStays(tx, volume)
}

// UsersOf returns the containers that use a volume. A container that is being
// deleted uses its volume until it is gone.
func UsersOf(tx *store.Tx, volume string) []string { return store.Containers.IDsBy(tx, volume) }

// HoldersOf returns the containers that keep a volume from being removed: those that
// use it, and those whose containers on the engine may still mount it.
func HoldersOf(tx *store.Tx, volume string) []string {
	return append(UsersOf(tx, volume), store.VolumeHolders(tx, volume)...)
}

// DeleteVolume requests the deletion of a volume. Its refusals are
// v1.ErrVolumeNotFound, v1.ErrVolumeRestoring, and the code VolumeInUse if a container
// uses the volume or still has it mounted.
func DeleteVolume(s store.Writer, id string) error {
	return s.Update(func(tx *store.Tx) error {
		o, err := getVolume(tx, id)
		if err != nil {
			return err
		}
		return deleteUnused(tx, o.Meta.ID)
	})
}

// deleteUnused requests the deletion of a volume unless a container uses it.
func deleteUnused(tx *store.Tx, id string) error {
	if by := HoldersOf(tx, id); len(by) > 0 {
		return errVolumeInUse(by[0])
	}
	return deleteVolume(tx, id)
}

// deleteVolume requests the deletion of a volume that no container uses, and removes its
// backup policy. Its backups stay.
func deleteVolume(tx *store.Tx, id string) error {
	if err := v1.ReservedBy(store.Restoring(tx, id)); err != nil {
		return err
	}
	return errors.Join(store.Policies.Purge(tx, id), store.Volumes.Delete(tx, id))
}
