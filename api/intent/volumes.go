package intent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"

	v1 "berth/api/v1"
	"berth/store"
)

var (
	fullUUID   = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	uuidPrefix = regexp.MustCompile(`^[0-9a-f]{8}$`)
)

// CreateVolume requests a new volume and returns its id. sizeLimit is in bytes; 0 is
// no limit.
func CreateVolume(s *store.Store, sizeLimit int64) (string, error) {
	if sizeLimit < 0 {
		return "", v1.Errorf(v1.InvalidRequest, "size_limit: must not be negative")
	}
	id := newUUID()
	return id, s.Update(func(tx *store.Tx) error {
		return store.Volumes.Create(tx, id, v1.VolumeSpec{SizeLimit: sizeLimit})
	})
}

// newUUID returns a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails, as its documentation says
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

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
	for _, id := range store.Volumes.IDs(tx) {
		if !strings.HasPrefix(id, text) {
			continue
		}
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

// UsersOf returns the containers that use a volume. A container that is being
// deleted uses its volume until it is gone.
func UsersOf(tx *store.Tx, volume string) []string { return store.Containers.IDsBy(tx, volume) }

// HoldersOf returns the containers that keep a volume from being removed: those that
// use it, and those whose containers on the engine may still mount it.
func HoldersOf(tx *store.Tx, volume string) []string {
	return append(UsersOf(tx, volume), store.VolumeHolders(tx, volume)...)
}

// VolumeUsers returns the result of UsersOf for every volume, in one pass over all
// containers.
func VolumeUsers(tx *store.Tx) (map[string][]string, error) {
	containers, err := store.Containers.List(tx)
	users := map[string][]string{}
	for _, c := range containers {
		users[c.Spec.VolumeID] = append(users[c.Spec.VolumeID], c.Meta.ID)
	}
	return users, err
}

// DeleteVolume requests the deletion of a volume. Its refusals are
// v1.ErrVolumeNotFound, and the code VolumeInUse if a container uses the volume or
// still has it mounted.
func DeleteVolume(s *store.Store, id string) error {
	return s.Update(func(tx *store.Tx) error {
		o, err := getVolume(tx, id)
		if err != nil {
			return err
		}
		if by := HoldersOf(tx, o.Meta.ID); len(by) > 0 {
			return errVolumeInUse(by[0])
		}
		return store.Volumes.Delete(tx, o.Meta.ID)
	})
}
