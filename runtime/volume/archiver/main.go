package archiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
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

// reportEvery is how long the process waits between two reports of its progress.
const reportEvery = 100 * time.Millisecond

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
func serve(in io.Reader, out io.Writer) error {
	root, messages := os.NewFile(rootHandle, "volume"), os.NewFile(messagesHandle, "messages")
	if info, err := root.Stat(); err != nil || !info.IsDir() {
		return errNotByHand
	}
	closeInherited()
	lowerPriority()
	var job volume.ArchiveJob
	if err := json.NewDecoder(in).Decode(&job); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(overhead + job.NameBytes)
	send := json.NewEncoder(messages)
	last, counted := message{}, &counter{w: out}
	sent := time.Now()
	result, err := volume.WriteArchive(context.Background(), root, counted, job, func(bytes int64) {
		last.Read = bytes
		if now := time.Now(); now.Sub(sent) >= reportEvery {
			sent = now
			_ = send.Encode(last) // the next write to a reader that has ended fails as well
		}
	})
	if err != nil {
		last.Error = newFailure(err)
		return errors.Join(err, send.Encode(last))
	}
	last.Result, last.Size = &result, counted.n
	return send.Encode(last)
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

// counter counts the bytes that it writes.
type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
