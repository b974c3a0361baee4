package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// KernelResources returns an error that names what is nearly used up of the kernel's resources that
// all containers share and for which it has no limit for each: then no other container gets any. proc is where
// procfs is mounted. A resource that cannot be read has enough.
func KernelResources(proc string) error {
	number := func(file string, field int) int64 {
		text, _ := os.ReadFile(filepath.Join(proc, "sys", file))
		fields := strings.Fields(string(text))
		if field >= len(fields) {
			return 0
		}
		n, _ := strconv.ParseInt(fields[field], 10, 64)
		return n
	}
	var errs []error
	check := func(what, sysctl string, used, most int64) {
		if most > 0 && used >= most-most/4 {
			errs = append(errs, fmt.Errorf("%d of %d %s are in use: stop the container that has most, or raise %s", used, most, what, sysctl))
		}
	}
	const terminals, aio, files = "kernel/pty/", "fs/aio-", "fs/file-"
	// The last ones are reserved for the host.
	check("terminals of containers", "kernel.pty.max", number(terminals+"nr", 0), number(terminals+"max", 0)-number(terminals+"reserve", 0))
	check("requests for asynchronous I/O", "fs.aio-max-nr", number(aio+"nr", 0), number(aio+"max-nr", 0))
	check("open files", "fs.file-max", number(files+"nr", 0), number(files+"nr", 2))
	return errors.Join(errs...)
}

// inotifySpare is how many inotify instances must be left of fs.inotify.max_user_instances, which
// root has for all containers whose processes are root.
const inotifySpare = 8

// Inotify returns an error if this user has few inotify instances left. It makes some for a moment, as
// the kernel does not count them.
func Inotify() error {
	for range inotifySpare {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return fmt.Errorf("less than %d inotify instances are left: stop the container that has most, or raise "+
				"fs.inotify.max_user_instances", inotifySpare)
		}
		defer unix.Close(fd)
	}
	return nil
}
