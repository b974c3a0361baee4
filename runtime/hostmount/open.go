package hostmount

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"berth/runtime"
)

// open opens source beneath the allowed directory that contains it. It follows links
// in the path of the allowed directory, which the operator controls, and nowhere
// else. If several allowed directories contain source, the outermost counts: a
// container may write to it and replace the inner ones.
func open(allowed []string, source string) (handle int, err error) {
	dir, rest, ok := within(allowed, source)
	if !ok {
		return 0, refused("it is not below a directory of docker.allowed_mounts")
	}
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, explain(err)
	}
	defer unix.Close(root)
	handle, err = unix.Openat2(root, rest, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	return handle, explain(err)
}

// Check returns why a source would be refused now, such as a link in its path, or "". One that does
// not exist may exist when it is mounted.
func (p *Pinner) Check(source string) (reason string) {
	handle, err := open(p.allowed(), source)
	switch {
	case err == nil:
		_ = unix.Close(handle)
	case errors.Is(err, runtime.ErrMountRefused):
		return strings.TrimPrefix(err.Error(), runtime.ErrMountRefused.Error()+": ")
	}
	return ""
}

// within returns the outermost allowed directory that contains source, and the
// path from there to it.
func within(allowed []string, source string) (dir, rest string, ok bool) {
	outermost := slices.SortedFunc(slices.Values(allowed), func(a, b string) int {
		return cmp.Compare(len(path.Clean(a)), len(path.Clean(b)))
	})
	source = path.Clean(source)
	for _, dir := range outermost {
		dir = path.Clean(dir)
		if source == dir {
			return dir, ".", true
		}
		if rest, ok := strings.CutPrefix(source, strings.TrimSuffix(dir, "/")+"/"); ok {
			return dir, rest, true
		}
	}
	return "", "", false
}

// explain converts an error of the kernel to one of package runtime.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOENT):
		return runtime.ErrMountMissing
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV):
		return refused("a part of the path is a link: name the directory that it leads to")
	case errors.Is(err, unix.ENOSYS):
		return refused("berth cannot pin it: mounts need openat2, Linux 5.6 or newer")
	}
	return refused("%v", err)
}
