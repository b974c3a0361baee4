package archiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"berth/runtime/volume"
)

// The handles that the process inherits besides its standard ones.
const (
	rootHandle     = 3 // the volume's root folder
	messagesHandle = 4 // a pipe
)

// The memory of the process. Its own buffers take less than overhead.
const (
	gcPercent = 50
	overhead  = 40 << 20
)

var errNotByHand = errors.New("this command needs the handles that berth serve passes to it; to make a backup, use berth backup create")

// Main is the process that Archiver starts. It returns the exit code.
func Main() int {
	// A service manager signals every process of the daemon: the daemon decides.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "berth", Command+":", err)
		return 1
	}
	return 0
}

// serve writes the archive that in requests to out.
func serve(in, out *os.File) error {
	root, messages := os.NewFile(rootHandle, "volume"), os.NewFile(messagesHandle, "messages")
	if info, err := root.Stat(); err != nil || !info.IsDir() {
		return errNotByHand
	}
	closeInherited()
	lowerPriority()
	var job volume.ArchiveJob
	r := &reporter{out: json.NewEncoder(messages), in: json.NewDecoder(in), sent: time.Now(), pace: newPace(host{ownUse, otherUse(uploader(out))}, runtime.NumCPU(), time.Sleep, setPolicy)}
	if err := r.in.Decode(&job); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(overhead + job.NameBytes)
	result, err := volume.WriteArchive(context.Background(), root, out, job, volume.ArchiveWatch{Progress: r.progress, Written: r.written})
	return errors.Join(err, r.end(result, err))
}

// uploader returns the id of the process that uploads what is written to out; 0: none does.
// The daemon passes a file, or a pipe whose content it uploads.
func uploader(out *os.File) int {
	if info, err := out.Stat(); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		return os.Getppid()
	}
	return 0
}

// closeInherited closes what the daemon itself had inherited. Only handles from before the
// start of this program lack FD_CLOEXEC.
func closeInherited() {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, h := range list {
		fd, err := strconv.Atoi(h.Name())
		if err != nil || fd <= messagesHandle {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}
