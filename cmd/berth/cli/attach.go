package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"berth/api/client"
	v1 "berth/api/v1"
)

// maxInput is the length of the longest line that attach sends, in bytes. The daemon
// accepts messages of 64 KiB, in which a control character takes six bytes.
const maxInput = 8 << 10

// errDetached is the end of an attachment that a person has ended.
var errDetached = errors.New("detached")

func newAttachCommand(c *connector) *cobra.Command {
	var tail int
	cmd := c.command(withoutNames(&cobra.Command{
		Use:   "attach <id>",
		Short: "Follow a container's console and write lines to it",
		Long: "Follow a container's console, and write the lines that are typed to it; nothing is sent before Enter. The\n" +
			"container runs on after Ctrl-P Ctrl-Q, Ctrl-C or Ctrl-D. Without a terminal, lines of standard input are sent;\n" +
			"after its end the command continues to follow.",
		Example: "  berth attach survival\n  berth attach survival --tail 0",
		Args:    cobra.ExactArgs(1),
	}), func(cmd *cobra.Command, d *daemon, args []string) error {
		if err := attach(cmd, d, args[0], tail); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return nil
	})
	cmd.Flags().IntVarP(&tail, "tail", "n", 20, "number of past lines, 0 to 10000")
	return cmd
}

// attach follows a console and sends lines to it until the container is deleted, or the
// person detaches. A detach and an interrupt are no errors. A broken stream is opened
// again.
func attach(cmd *cobra.Command, d *daemon, id string, tail int) error {
	parent, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP, syscall.SIGQUIT) // so that the terminal is restored
	defer stop()
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	if _, err := d.Containers().Get(ctx, id); err != nil {
		return err
	}
	a := &attachment{cmd: cmd, daemon: d, id: id}
	d.notices = notes{a}
	in, err := openInput(cmd)
	if err != nil {
		return err
	}
	defer in.close()
	var reading sync.WaitGroup
	reading.Go(func() {
		if err := a.input(ctx, in); err != nil {
			end(err) // and the stream
		}
	})
	end(a.follow(ctx, client.OpenOptions{Tail: tail, Size: in.size()}))
	in.stop()
	reading.Wait()
	switch err := context.Cause(ctx); {
	case parent.Err() != nil:
		return nil
	case errors.Is(err, errDetached):
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "\nberth: detached from %s\n", id)
		return err
	default:
		return err
	}
}

// attachment connects a container with standard input and output.
type attachment struct {
	cmd    *cobra.Command
	daemon *daemon
	id     string

	mu sync.Mutex // guards what is printed
}

// input sends lines until there are no more. It returns errDetached if a person has
// ended them, and nil at the end of a file.
func (a *attachment) input(ctx context.Context, in *input) error {
	for in.lines.Scan() {
		line := in.lines.Text()
		if len(line) > maxInput {
			a.note("the line is longer than " + v1.Size(maxInput).String() + " and was not sent")
			continue
		}
		if err := a.daemon.Containers().Send(ctx, a.id, line); err != nil && ctx.Err() == nil {
			a.note("the line was not sent: " + err.Error())
		}
	}
	if err := in.lines.Err(); err != nil || !in.typed {
		return err
	}
	return errDetached // Ctrl-D
}

// follow prints messages until there are no more.
func (a *attachment) follow(ctx context.Context, options client.OpenOptions) error {
	for m, err := range a.daemon.Containers().Follow(ctx, a.id, options) {
		if err != nil {
			return err
		}
		a.daemon.broken = false
		if err := a.print(m); err != nil {
			return err
		}
	}
	return nil
}

func (a *attachment) print(m client.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !isText(a.cmd) {
		return printNext(a.cmd, m.JSON)
	}
	return printMessage(a.cmd.OutOrStdout(), a.cmd.ErrOrStderr(), m)
}

// note prints a message of berth. The next line of the console fails if this does.
func (a *attachment) note(text string) { _, _ = fmt.Fprintf(notes{a}, "berth: %s\n", text) }

// notes is standard error, also while the console is printed.
type notes struct{ *attachment }

// Write writes p to standard error.
func (n notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cmd.ErrOrStderr().Write(p)
}

// input is where attach reads lines. A terminal stays in its line mode: the person edits
// a line with the keys of the terminal.
type input struct {
	lines *bufio.Scanner
	typed bool // on a terminal

	f            *os.File
	wake, waking *os.File // a pipe: closing waking wakes a read that waits for a person
	restore      func()
}

// openInput opens the standard input of a command. On a terminal, the keys that detach
// end a read until close is called.
func openInput(cmd *cobra.Command) (*input, error) {
	i := &input{restore: func() {}}
	from := cmd.InOrStdin()
	if f, is := from.(*os.File); is {
		i.f = f
		var err error
		if i.wake, i.waking, err = os.Pipe(); err != nil {
			return nil, err
		}
		from = i
		if i.typed = IsTerminal(i.f); i.typed {
			if err := i.delimit(); err != nil {
				i.close()
				return nil, err
			}
		}
	}
	i.lines = bufio.NewScanner(from)
	i.lines.Buffer(nil, 2*maxInput)
	if i.typed {
		i.lines.Split(splitTyped)
	}
	return i, nil
}

// size returns a function that returns the size of the terminal; nil if there is none.
func (i *input) size() func() (columns, rows int) {
	if !i.typed {
		return nil
	}
	return func() (columns, rows int) {
		columns, rows, _ = term.GetSize(int(i.f.Fd())) // 0 if it fails
		return columns, rows
	}
}

// The keys that end an attachment.
const (
	ctrlC = '\x03'
	ctrlP = '\x10'
	ctrlQ = '\x11'
)

// delimit makes Ctrl-Q and Ctrl-C end a read as Enter does, until restore is called.
func (i *input) delimit() error {
	fd := int(i.f.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	mode := *before
	mode.Iflag = mode.Iflag&^unix.IXON | unix.ICRNL
	mode.Lflag |= unix.ICANON | unix.IEXTEN
	mode.Cc[unix.VEOL], mode.Cc[unix.VEOL2], mode.Cc[unix.VINTR] = ctrlQ, ctrlC, 0          // no key interrupts
	i.restore = sync.OnceFunc(func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, before) }) // the terminal may be gone
	return unix.IoctlSetTermios(fd, unix.TCSETS, &mode)
}

// splitTyped splits what is typed into lines, until the keys that detach.
func splitTyped(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if !bytes.ContainsRune(data, '\n') && (bytes.HasSuffix(data, []byte{ctrlP, ctrlQ}) || bytes.HasSuffix(data, []byte{ctrlC})) {
		return 0, nil, errDetached
	}
	return bufio.ScanLines(data, atEOF)
}

// Read reads from the file. After stop it returns io.EOF.
func (i *input) Read(p []byte) (int, error) {
	const ready = unix.POLLIN | unix.POLLHUP | unix.POLLERR
	for {
		set := []unix.PollFd{{Fd: int32(i.f.Fd()), Events: unix.POLLIN}, {Fd: int32(i.wake.Fd()), Events: unix.POLLIN}}
		_, err := unix.Poll(set, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case set[1].Revents&ready != 0:
			return 0, io.EOF
		case set[0].Revents != 0:
			return i.f.Read(p)
		}
	}
}

// stop ends the reads.
func (i *input) stop() {
	i.restore()
	if i.f != nil {
		_ = i.waking.Close()
	}
}

// close releases what openInput has opened. No read may be in progress.
func (i *input) close() {
	i.stop()
	if i.f != nil {
		_ = i.wake.Close()
	}
}
