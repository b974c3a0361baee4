package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// images keeps volumes that have a file system of their own: a sparse file with
// an ext4, mounted in the volume's place, which cannot grow over its size. It is
// how a limit becomes hard on any host that can mount.
type images struct {
	base string // where the volumes are
	dir  string // where the files are

	mu  sync.Mutex
	has map[string]bool // volumes that have one
}

// imageTime bounds one call of a tool.
const imageTime = time.Minute

// imageSize is that of an image for a limit: what ext4 itself needs is added, so
// that the soft limit, which has better words, is met first.
func imageSize(limit int64) int64 { return (limit+limit/12+32<<20)/blockSize*blockSize + blockSize }

// openImages finds the images that are there, and mounts those that a restart
// of the host has left unmounted. What fails is told by the volume's Check.
func openImages(base string) (*images, error) {
	i := &images{base: base, dir: filepath.Join(base, ".images"), has: map[string]bool{}}
	list, err := os.ReadDir(i.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	if err != nil {
		return nil, fmt.Errorf("volumes: %w", err)
	}
	for _, e := range list {
		if id, is := strings.CutSuffix(e.Name(), ".img"); is {
			i.has[id] = true
			_ = i.mount(context.Background(), id)
		}
	}
	return i, nil
}

func (i *images) file(id string) string  { return filepath.Join(i.dir, id+".img") }
func (i *images) place(id string) string { return filepath.Join(i.base, id) }

// holds says whether the volume has an image.
func (i *images) holds(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.has[id]
}

func (i *images) record(id string, has bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.has[id] = has
}

// probe makes a small image, mounts it and takes it away: it says why this host
// cannot, or nil.
func (i *images) probe(ctx context.Context) error {
	const id = ".probe"
	err := i.make(ctx, id, 1<<20)
	return errors.Join(err, i.remove(id), ignoreMissing(os.Remove(i.place(id))))
}

// make makes the image of a new volume, and mounts it.
func (i *images) make(ctx context.Context, id string, limit int64) error {
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return err
	}
	half := i.file(id) + ".half"
	f, err := os.OpenFile(half, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(f.Truncate(imageSize(limit)), f.Close())
	if err == nil {
		err = tool(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", half)
	}
	if err == nil {
		err = os.Rename(half, i.file(id))
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(half)))
	}
	i.record(id, true)
	return i.mount(ctx, id)
}

// mount mounts an image that is not mounted. The place is made: a volume with an
// image is in its image, and no empty folder is ever taken for it.
func (i *images) mount(ctx context.Context, id string) error {
	if err := os.Mkdir(i.place(id), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if i.mounted(id) {
		return nil
	}
	err := i.growLate(ctx, id)
	if err == nil {
		err = tool(ctx, "mount", "-t", "ext4", "-o", "loop,nosuid,nodev,noatime", i.file(id), i.place(id))
	}
	if err != nil {
		// No container may start in the empty folder: without it, its bind is refused.
		return errors.Join(err, os.Remove(i.place(id)))
	}
	return errors.Join(os.Chmod(i.place(id), 0o700), ignoreMissing(os.Remove(filepath.Join(i.place(id), "lost+found"))))
}

// used is what the volume's file system has in use.
func (i *images) used(id string) (v1.Usage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(i.place(id), &st); err != nil {
		return v1.Usage{}, &os.PathError{Op: "statfs", Path: id, Err: err}
	}
	return v1.Usage{Bytes: int64(st.Blocks-st.Bfree) * st.Frsize, Files: int64(st.Files - st.Ffree)}, nil
}

// mounted says whether a file system other than that of the volumes' directory
// is in the volume's place.
func (i *images) mounted(id string) bool {
	var place, base unix.Stat_t
	return unix.Lstat(i.place(id), &place) == nil && unix.Lstat(i.base, &base) == nil && place.Dev != base.Dev
}

// fit mounts the image if need be, and lets it grow to a larger limit: at once,
// or, where the daemon may not do that, when it is mounted the next time. It
// never shrinks: the soft limit does what is left.
func (i *images) fit(ctx context.Context, id string, limit int64) error {
	if err := i.mount(ctx, id); err != nil {
		return err
	}
	info, err := os.Stat(i.file(id))
	if err != nil || limit == 0 || info.Size() >= imageSize(limit) {
		return err
	}
	device, err := i.device(ctx, id)
	if err != nil {
		return err
	}
	if err := os.Truncate(i.file(id), imageSize(limit)); err != nil {
		return err
	}
	if err := tool(ctx, "losetup", "-c", device); err != nil {
		return err
	}
	if tool(ctx, "resize2fs", device) == nil {
		return nil
	}
	return os.WriteFile(i.late(id), nil, 0o600)
}

// device is the loop device of an image, or empty.
func (i *images) device(ctx context.Context, id string) (string, error) {
	out, err := output(ctx, "losetup", "-n", "-O", "NAME", "-j", i.file(id))
	device, _, _ := strings.Cut(out, "\n")
	return device, err
}

// errAttached says that the kernel has not let go of an image yet: what it has
// cached of it would not agree with what is changed now.
var errAttached = errors.New("image is still attached to a loop device")

// late is the mark of an image whose file system is smaller than its file.
func (i *images) late(id string) string { return i.file(id) + ".late" }

// growLate lets an image grow that is not mounted, if it is marked.
func (i *images) growLate(ctx context.Context, id string) error {
	if _, err := os.Lstat(i.late(id)); err != nil {
		return ignoreMissing(err)
	}
	if device, err := i.device(ctx, id); err != nil || device != "" {
		return errors.Join(errAttached, err)
	}
	if err := tool(ctx, "e2fsck", "-f", "-p", i.file(id)); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() > 1 { // 1: it had something to put right
			return err
		}
	}
	return errors.Join(tool(ctx, "resize2fs", i.file(id)), os.Remove(i.late(id)))
}

// remove unmounts an image and takes it away.
func (i *images) remove(id string) error {
	if i.mounted(id) {
		err := unix.Unmount(i.place(id), 0)
		if errors.Is(err, syscall.EBUSY) { // somebody looks at it: it goes when they have ended
			err = unix.Unmount(i.place(id), unix.MNT_DETACH)
		}
		if err != nil {
			return &os.PathError{Op: "unmount", Path: id, Err: err}
		}
	}
	if err := errors.Join(ignoreMissing(os.Remove(i.file(id))), ignoreMissing(os.Remove(i.late(id)))); err != nil {
		return err
	}
	i.record(id, false)
	return nil
}

// tool runs one of the system's tools; see output.
func tool(ctx context.Context, name string, args ...string) error {
	_, err := output(ctx, name, args...)
	return err
}

// output is what one of the system's tools says. It inherits no environment: the
// daemon's may hold tokens.
func output(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, imageTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(said.String()+out.String()))
	}
	return out.String(), nil
}
