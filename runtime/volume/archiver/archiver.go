package archiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// Command is the argument that makes berth write an archive. The id of the volume follows,
// which shows in lists of processes and means nothing else.
const Command = "archive-volume"

// Self is the program that runs, also after another version has replaced its file.
const Self = "/proc/self/exe"

// Archiver starts processes that write archives. It is safe for concurrent use.
type Archiver struct {
	Program string // berth
	Log     *slog.Logger
}

// Write is a volume.ArchiveFunc. It returns when the process has ended. The process itself
// writes to w if w is an *os.File.
func (a *Archiver) Write(ctx context.Context, root *os.File, w io.Writer, job volume.ArchiveJob, watch volume.ArchiveWatch) (v1.Snapshot, error) {
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	p, err := a.start(ctx, root, w, job.Volume)
	if err != nil {
		return v1.Snapshot{}, fmt.Errorf("start the process that writes the archive: %w", err)
	}
	defer p.close()
	last := make(chan message, 1)
	go func() { last <- p.follow(job, watch, kill) }()
	if err := p.copy(); err != nil {
		kill(err)
	}
	m := <-last
	<-p.ended
	size, err := p.size()
	switch {
	case ctx.Err() != nil:
		return v1.Snapshot{}, context.Cause(ctx)
	case err != nil:
		return v1.Snapshot{}, err
	case m.Error != nil:
		return v1.Snapshot{}, m.Error.err()
	case p.exit != nil || m.Result == nil || m.Result.Size != m.Written || m.Written != size:
		return v1.Snapshot{}, a.crashed(job, p.exit, string(p.stderr.kept))
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

// start starts a process, which is killed when ctx ends.
func (a *Archiver) start(ctx context.Context, root *os.File, w io.Writer, id string) (p *process, err error) {
	p = &process{target: w, ended: make(chan struct{})}
	ends, err := p.open()
	defer ends.close()
	if err != nil {
		p.close()
		return nil, err
	}
	cmd := exec.CommandContext(ctx, a.Program)
	cmd.Args = []string{"berth", Command, id}
	cmd.Env = []string{} // it needs none, and must not have the secrets of the daemon's
	cmd.Stdin, cmd.Stdout, cmd.Stderr = ends.input, p.output(ends), &p.stderr
	cmd.ExtraFiles = []*os.File{rootHandle - 3: root, messagesHandle - 3: ends.messages}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:    true, // signals of the terminal are for the daemon; lowerPriority needs it too
		Pdeathsig: syscall.SIGKILL,
	}
	if err := p.run(cmd); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// run starts the process. The thread that starts it stays until the process has ended: the
// kernel sends Pdeathsig when that thread ends.
func (p *process) run(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.exit = cmd.Wait()
			close(p.ended)
		}
	}()
	return <-started
}
