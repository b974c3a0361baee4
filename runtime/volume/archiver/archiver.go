package archiver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// Command is the argument that makes berth write an archive. The id of the volume follows,
// which shows in lists of processes and means nothing else.
const Command = "archive-volume"

// Self is the program that runs, also after another version has replaced its file.
const Self = "/proc/self/exe"

const (
	pipeBytes   = 1 << 20   // of the archive, that wait in the kernel
	copyBytes   = 256 << 10 // of the archive, that are copied at once
	stderrBytes = 4 << 10   // of the process's own messages, that are kept
)

// Archiver starts processes that write archives. It is safe for concurrent use.
type Archiver struct {
	Program string // berth
	Log     *slog.Logger
}

// Write is a volume.ArchiveFunc. It returns when the process has ended.
func (a *Archiver) Write(ctx context.Context, root *os.File, w io.Writer, job volume.ArchiveJob, progress func(bytes int64)) (v1.Snapshot, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // kills the process
	p, err := a.start(ctx, root, job)
	if err != nil {
		return v1.Snapshot{}, fmt.Errorf("start the process that writes the archive: %w", err)
	}
	defer p.close()
	last := make(chan message, 1)
	go func() { last <- follow(p.messages, progress) }()
	size, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{p.archive}, make([]byte, copyBytes))
	if err != nil {
		cancel()
	}
	m, exit := <-last, <-p.exited
	switch {
	case err != nil:
		return v1.Snapshot{}, err
	case ctx.Err() != nil:
		return v1.Snapshot{}, ctx.Err()
	case m.Error != nil:
		return v1.Snapshot{}, m.Error.err()
	case exit != nil || m.Result == nil || m.Size != size:
		return v1.Snapshot{}, a.crashed(job, exit, string(p.stderr.kept))
	}
	return *m.Result, nil
}

// crashed logs what a process wrote that ended without a result, and returns an error.
func (a *Archiver) crashed(job volume.ArchiveJob, exit error, stderr string) error {
	reason := "it sent no result"
	if exit != nil {
		reason = exit.Error()
	}
	var status *exec.ExitError
	if errors.As(exit, &status) && status.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		reason += "; the host may be out of memory"
	}
	a.Log.Error("the process that writes an archive has failed", "volume", job.Volume, "reason", reason, "stderr", stderr)
	if first, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n"); first != "" {
		reason += ": " + first // of a crash of Go the first line is the reason, and a trace follows
	}
	return fmt.Errorf("the process that writes the archive has failed: %s", reason)
}

// process is a process that writes an archive.
type process struct {
	archive, messages *os.File
	stderr            head
	exited            chan error // receives the result of Wait
}

func (p *process) close() {
	p.archive.Close()
	p.messages.Close()
}

// start starts a process, which is killed when ctx ends.
func (a *Archiver) start(ctx context.Context, root *os.File, job volume.ArchiveJob) (*process, error) {
	input, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	archive, archiveEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer archiveEnd.Close()
	messages, messagesEnd, err := os.Pipe()
	if err != nil {
		archive.Close()
		return nil, err
	}
	defer messagesEnd.Close()
	_, _ = unix.FcntlInt(archive.Fd(), unix.F_SETPIPE_SZ, pipeBytes) // the default works as well
	p := &process{archive: archive, messages: messages, exited: make(chan error, 1)}
	cmd := exec.CommandContext(ctx, a.Program)
	cmd.Args = []string{"berth", Command, job.Volume}
	cmd.Env = []string{} // it needs none, and must not have the secrets of the daemon's
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), archiveEnd, &p.stderr
	cmd.ExtraFiles = []*os.File{rootHandle - 3: root, messagesHandle - 3: messagesEnd}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:    true, // signals of the terminal are for the daemon; lowerPriority needs it too
		Pdeathsig: syscall.SIGKILL,
	}
	if err := run(cmd, p.exited); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// run starts a command and sends the result of its Wait to exited. The thread that starts
// it stays until then: the kernel sends Pdeathsig when that thread ends.
func run(cmd *exec.Cmd, exited chan<- error) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			exited <- cmd.Wait()
		}
	}()
	return <-started
}

// head keeps the beginning of what is written to it.
type head struct{ kept []byte }

// Write implements io.Writer. It drops what is too much.
func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), stderrBytes-len(h.kept))]...)
	return len(p), nil
}
