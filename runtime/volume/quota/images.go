package quota

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

// Images manages the volumes that have a file system of their own: a sparse file
// with an ext4, mounted at the volume's directory, which cannot grow beyond its
// size. It makes limits hard on any host that can mount.
type Images struct {
	base string // directory of the volumes
	dir  string // directory of the image files

	mu  sync.Mutex
	has map[string]bool // volumes that have an image

	switching sync.RWMutex // held for writing while one image is mounted instead of another
}

// imageTime bounds one run of a tool.
const imageTime = time.Minute

// imageSize returns the size of an image for a limit, in bytes. It adds the space
// that ext4 itself needs, so that the soft limit, whose error is clearer, applies
// first.
func imageSize(limit int64) int64 { return (limit+limit/12+32<<20)/Block*Block + Block }

// OpenImages finds the existing images, completes replacements that a crash
// interrupted, and mounts those that are not mounted, as after a restart of the host. EnsureSize returns the error of a failed mount.
func OpenImages(base string) (*Images, error) {
	i := &Images{base: base, dir: filepath.Join(base, ".images"), has: map[string]bool{}}
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
			if i.replacement(id).recover() == nil { // otherwise Check returns the error of the mount
				_ = i.mount(context.Background(), id)
			}
		}
	}
	return i, nil
}

func (i *Images) file(id string) string       { return filepath.Join(i.dir, id+".img") }
func (i *Images) mountPoint(id string) string { return filepath.Join(i.base, id) }

// Exists reports whether the volume has an image.
func (i *Images) Exists(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.has[id]
}

func (i *Images) record(id string, has bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.has[id] = has
}

// Probe creates, mounts and removes a small image. Its error is why this host
// cannot have images.
func (i *Images) Probe(ctx context.Context) error {
	const id = ".probe"
	err := i.Make(ctx, id, 1<<20)
	return errors.Join(err, i.Remove(id), removeFile(i.mountPoint(id)))
}

// Make creates the image of a new volume and mounts it.
func (i *Images) Make(ctx context.Context, id string, limit int64) error {
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return err
	}
	partial := i.file(id) + ".half"
	err := format(ctx, partial, imageSize(limit))
	if err == nil {
		err = os.Rename(partial, i.file(id))
	}
	if err != nil {
		return errors.Join(err, removeFile(partial))
	}
	i.record(id, true)
	return i.mount(ctx, id)
}

// format creates a sparse file with an empty ext4.
func format(ctx context.Context, file string, size int64) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	return tool(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", file)
}

// mount mounts an image if it is not mounted. The mount point exists only while the
// image is mounted, so that no empty folder is taken for the volume.
func (i *Images) mount(ctx context.Context, id string) error {
	if i.Mounted(id) {
		return nil
	}
	if err := i.growUnmounted(ctx, id); err != nil {
		return errors.Join(err, removeFile(i.mountPoint(id)))
	}
	return mountImage(ctx, i.file(id), i.mountPoint(id))
}

// mountImage mounts an image file at place, which it creates. It removes place if it
// fails.
func mountImage(ctx context.Context, file, place string) error {
	if err := os.Mkdir(place, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := tool(ctx, "mount", "-t", "ext4", "-o", "loop,nosuid,nodev,noatime", file, place); err != nil {
		// No container may start with the empty folder. Without it the engine refuses.
		return errors.Join(err, os.Remove(place))
	}
	return errors.Join(os.Chmod(place, 0o700), removeFile(filepath.Join(place, "lost+found")))
}

// Used returns the usage of the volume's file system.
func (i *Images) Used(id string) (v1.Usage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(i.mountPoint(id), &st); err != nil {
		return v1.Usage{}, &os.PathError{Op: "statfs", Path: id, Err: err}
	}
	return v1.Usage{Bytes: int64(st.Blocks-st.Bfree) * st.Frsize, Files: int64(st.Files - st.Ffree)}, nil
}

// Mounted reports whether a file system other than that of the volumes' directory
// is mounted at the volume's directory.
func (i *Images) Mounted(id string) bool { return i.mountedAt(i.mountPoint(id)) }

// mountedAt is Mounted for a directory beside the volumes.
func (i *Images) mountedAt(dir string) bool {
	var place, base unix.Stat_t
	return unix.Lstat(dir, &place) == nil && unix.Lstat(i.base, &base) == nil && place.Dev != base.Dev
}

// EnsureSize mounts the image if it is not mounted and grows it to a larger limit:
// at once, or at its next mount if the daemon lacks the capability. An image never
// shrinks: a smaller limit is soft.
func (i *Images) EnsureSize(ctx context.Context, id string, limit int64) error {
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
	return os.WriteFile(i.growMark(id), nil, 0o600)
}

// device returns the loop device of an image, or an empty string.
func (i *Images) device(ctx context.Context, id string) (string, error) {
	out, err := output(ctx, "losetup", "-n", "-O", "NAME", "-j", i.file(id))
	device, _, _ := strings.Cut(out, "\n")
	return device, err
}

// errAttached reports that an image is still attached to a loop device, whose cache
// would conflict with a change of the file.
var errAttached = errors.New("image is still attached to a loop device")

// growMark returns the file that marks an image whose file system is smaller than
// its file.
func (i *Images) growMark(id string) string { return i.file(id) + ".late" }

// growUnmounted grows the file system of an unmounted image that has a mark.
func (i *Images) growUnmounted(ctx context.Context, id string) error {
	_, err := os.Lstat(i.growMark(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if device, err := i.device(ctx, id); err != nil || device != "" {
		return errors.Join(errAttached, err)
	}
	if err := tool(ctx, "e2fsck", "-f", "-p", i.file(id)); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() > 1 { // 1 means that errors were corrected
			return err
		}
	}
	return errors.Join(tool(ctx, "resize2fs", i.file(id)), os.Remove(i.growMark(id)))
}

// Remove unmounts an image and removes it.
func (i *Images) Remove(id string) error {
	if err := errors.Join(i.detach(id), i.replacement(id).Remove()); err != nil {
		return err
	}
	if err := errors.Join(removeFile(i.file(id)), removeFile(i.growMark(id))); err != nil {
		return err
	}
	i.record(id, false)
	return nil
}

// detach unmounts the image of a volume, if it is mounted.
func (i *Images) detach(id string) error {
	if !i.Mounted(id) {
		return nil
	}
	err := unix.Unmount(i.mountPoint(id), 0)
	if errors.Is(err, syscall.EBUSY) { // in use: the kernel unmounts it when the last user is gone
		err = unix.Unmount(i.mountPoint(id), unix.MNT_DETACH)
	}
	if err != nil {
		return &os.PathError{Op: "unmount", Path: id, Err: err}
	}
	return nil
}

// tool runs a system tool. See output.
func tool(ctx context.Context, name string, args ...string) error {
	_, err := output(ctx, name, args...)
	return err
}

// output runs a system tool and returns its standard output. The tool does not
// inherit the daemon's environment, which may contain tokens.
func output(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, imageTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(stderr.String()+stdout.String()))
	}
	return stdout.String(), nil
}

// removeFile removes a file or an empty folder if it exists.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
