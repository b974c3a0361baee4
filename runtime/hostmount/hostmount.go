package hostmount

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"berth/runtime"
)

// Pinner pins the mounts of containers. It is safe for concurrent use; only one
// goroutine at a time may pin the mounts of a container.
type Pinner struct {
	dir     string          // mount point of the tmpfs
	allowed func() []string // returns the allowed directories
	log     *slog.Logger

	ready     atomic.Bool
	preparing chan struct{} // semaphore of one: held while the tmpfs is mounted
	dropped   atomic.Uint64 // numbers the directories that unpin removes
}

// New returns a Pinner that keeps its mounts in dir, which nothing else may use. It
// unmounts what an earlier process left there. It calls allowed for each pin.
func New(dir string, allowed func() []string, log *slog.Logger) *Pinner {
	p := &Pinner{dir: dir, allowed: allowed, log: log, preparing: make(chan struct{}, 1)}
	p.unmountAll()
	return p
}

// Close unmounts everything.
func (p *Pinner) Close() error {
	p.unmountAll()
	if err := os.Remove(p.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Pin pins the sources of mounts and returns the mounts with the paths of the pins,
// which exist until release is called. The same mounts of n get the same paths. The
// error is runtime.ErrMountRefused if a mount is not permitted or cannot be pinned,
// and runtime.ErrMountMissing if its source does not exist.
func (p *Pinner) Pin(ctx context.Context, n runtime.Name, mounts []runtime.Mount) (pinned []runtime.Mount, release func(), err error) {
	if len(mounts) == 0 {
		return nil, func() {}, nil
	}
	if err := p.prepare(ctx); err != nil {
		return nil, nil, fmt.Errorf("mount of %s: %w", mounts[0].Source, err)
	}
	place := filepath.Join(p.dir, n.ID+"-"+string(n.Role))
	p.unpin(place) // left by a call that did not finish
	building := place + ".new"
	p.unpin(building)
	if err := os.Mkdir(building, 0o700); err != nil {
		return nil, nil, fmt.Errorf("mount of %s: %w", mounts[0].Source, err)
	}
	for _, m := range mounts {
		if err := p.pin(m, filepath.Join(building, key(m))); err != nil {
			p.unpin(building)
			return nil, nil, fmt.Errorf("mount of %s at %s: %w", m.Source, m.Target, err)
		}
		pinned = append(pinned, runtime.Mount{Source: filepath.Join(place, key(m)), Target: m.Target, ReadOnly: m.ReadOnly})
	}
	if err := os.Rename(building, place); err != nil {
		p.unpin(building)
		return nil, nil, fmt.Errorf("mount of %s: %w", mounts[0].Source, err)
	}
	return pinned, func() { p.unpin(place) }, nil
}

// key returns the name of a pin, derived from all fields of its mount, so that a
// container that was created with other mounts does not find this one.
func key(m runtime.Mount) string {
	sum := sha256.Sum256([]byte(m.Source + "\x00" + m.Target + "\x00" + strconv.FormatBool(m.ReadOnly)))
	return hex.EncodeToString(sum[:8])
}

// pin mounts the source of m at place.
func (p *Pinner) pin(m runtime.Mount, place string) error {
	source, err := open(p.allowed(), m.Source)
	if err != nil {
		return err
	}
	defer unix.Close(source)
	if err := makeMountPoint(source, place); err != nil {
		return err
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", source), place, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return refused("berth cannot pin it: mount: %v", err)
	}
	// Otherwise unmounting the pin would unmount the mounts below the source too.
	if err := unix.Mount("", place, "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return refused("berth cannot pin it: mount private: %v", err)
	}
	return nil
}

// makeMountPoint creates an empty directory or file, whichever the source is.
func makeMountPoint(source int, place string) error {
	var st unix.Stat_t
	if err := unix.Fstat(source, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return os.Mkdir(place, 0o700)
	case unix.S_IFREG:
		f, err := os.OpenFile(place, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		return f.Close()
	}
	return refused("it is neither a directory nor a regular file")
}

// prepare mounts the tmpfs, if it is not mounted.
func (p *Pinner) prepare(ctx context.Context) error {
	if p.ready.Load() {
		return nil
	}
	select {
	case p.preparing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.preparing }()
	if p.ready.Load() {
		return nil
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return refused("berth cannot pin it: %v; run berth as root", err)
	}
	if err := unix.Mount("berth", p.dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700,size=16m"); err != nil {
		return refused("berth cannot pin it: mount tmpfs: %v; run berth as root with CAP_SYS_ADMIN, in the engine's mount namespace", err)
	}
	p.ready.Store(true)
	return nil
}

// unpin unmounts the pins in place and removes it. It renames place first, so that
// no engine finds empty directories there.
func (p *Pinner) unpin(place string) {
	gone := filepath.Join(p.dir, ".gone-"+strconv.FormatUint(p.dropped.Add(1), 10))
	if err := os.Rename(place, gone); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			p.log.Error("pinned mounts are not removed", "path", place, "err", err)
		}
		return
	}
	list, err := os.ReadDir(gone)
	for _, e := range list {
		pin := filepath.Join(gone, e.Name())
		if unmount := unix.Unmount(pin, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); !errors.Is(unmount, unix.EINVAL) { // EINVAL: not mounted
			err = errors.Join(err, unmount)
		}
		err = errors.Join(err, os.Remove(pin)) // never RemoveAll: a failed unmount would remove the operator's files
	}
	if err = errors.Join(err, os.Remove(gone)); err != nil {
		p.log.Error("pinned mounts are not removed", "path", gone, "err", err)
	}
}

// unmountAll unmounts each tmpfs at dir, with its pins. It makes the mounts private
// first, because an earlier process may have ended right after it mounted a pin.
func (p *Pinner) unmountAll() {
	for {
		_ = unix.Mount("", p.dir, "", unix.MS_PRIVATE|unix.MS_REC, "")
		if unix.Unmount(p.dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) != nil {
			return // nothing is mounted, or berth lacks the capability to mount at all
		}
	}
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", runtime.ErrMountRefused, fmt.Sprintf(format, args...))
}
