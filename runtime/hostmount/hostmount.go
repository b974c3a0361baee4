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

// Pinner pins the mounts of containers. It can be used by many goroutines, by
// one at a time for each container.
type Pinner struct {
	dir     string          // where the tmpfs is mounted
	allowed func() []string // the allowed directories now
	log     *slog.Logger

	ready   atomic.Bool
	one     chan struct{} // held by the goroutine that mounts the tmpfs
	dropped atomic.Uint64 // names directories that are being removed
}

// New returns a Pinner that keeps its mounts in dir, which nothing else may use.
// It unmounts what an earlier process left there. allowed is called for each pin.
func New(dir string, allowed func() []string, log *slog.Logger) *Pinner {
	p := &Pinner{dir: dir, allowed: allowed, log: log, one: make(chan struct{}, 1)}
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

// Pin returns mounts with the paths at which their sources are pinned until
// release is called. These paths are the same for the same mounts of n. A mount
// that is not permitted or cannot be pinned is runtime.ErrMountRefused, a source
// that does not exist is runtime.ErrMountMissing.
func (p *Pinner) Pin(ctx context.Context, n runtime.Name, mounts []runtime.Mount) (pinned []runtime.Mount, release func(), err error) {
	if len(mounts) == 0 {
		return nil, func() {}, nil
	}
	if err := p.prepare(ctx); err != nil {
		return nil, nil, fmt.Errorf("mount of %s: %w", mounts[0].Source, err)
	}
	place := filepath.Join(p.dir, n.ID+"-"+string(n.Role))
	p.drop(place) // of a call that did not end
	building := place + ".new"
	p.drop(building)
	if err := os.Mkdir(building, 0o700); err != nil {
		return nil, nil, fmt.Errorf("mount of %s: %w", mounts[0].Source, err)
	}
	for _, m := range mounts {
		if err := p.pin(m, filepath.Join(building, key(m))); err != nil {
			p.drop(building)
			return nil, nil, fmt.Errorf("mount of %s at %s: %w", m.Source, m.Target, err)
		}
		pinned = append(pinned, runtime.Mount{Source: filepath.Join(place, key(m)), Target: m.Target, ReadOnly: m.ReadOnly})
	}
	if err := os.Rename(building, place); err != nil {
		p.drop(building)
		return nil, nil, fmt.Errorf("mount of %s: %w", mounts[0].Source, err)
	}
	return pinned, func() { p.drop(place) }, nil
}

// key names a pin after all of its mount, so that a container that was created
// with other mounts finds none of these in their place.
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
	if err := makePlace(source, place); err != nil {
		return err
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", source), place, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return refused("berth cannot pin it: mount: %v", err)
	}
	// Private, or unmounting it would unmount what is mounted below the source too.
	if err := unix.Mount("", place, "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return refused("berth cannot pin it: mount private: %v", err)
	}
	return nil
}

// makePlace makes an empty directory or file, as the source is one.
func makePlace(source int, place string) error {
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
	case p.one <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.one }()
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

// drop unmounts the pins in place and removes it. First its name goes, so that
// no engine finds the empty directories.
func (p *Pinner) drop(place string) {
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
		err = errors.Join(err, os.Remove(pin)) // never RemoveAll: what is mounted is not ours
	}
	if err = errors.Join(err, os.Remove(gone)); err != nil {
		p.log.Error("pinned mounts are not removed", "path", gone, "err", err)
	}
}

// unmountAll unmounts each tmpfs that is mounted at dir, with its pins. They are made
// private first: an earlier process may have ended between mounting a pin and that.
func (p *Pinner) unmountAll() {
	for {
		_ = unix.Mount("", p.dir, "", unix.MS_PRIVATE|unix.MS_REC, "")
		if unix.Unmount(p.dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) != nil {
			return // nothing is mounted, or berth may not unmount, nor mount
		}
	}
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", runtime.ErrMountRefused, fmt.Sprintf(format, args...))
}
