package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
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
	in, err := openInput(cmd)
	if err != nil {
		return err
	}
	defer in.restore()
	go func() { // a read that waits for a person ends with the process
		if err := a.input(ctx, in); err != nil {
			end(err) // and the stream
		}
	}()
	end(d.receive(notes{a}, d.Containers().Follow(ctx, id, client.OpenOptions{Tail: tail, Size: in.size()}), a.print))
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

	f       *os.File
	restore func() // the mode of the terminal
}

// openInput returns the standard input of a command. On a terminal, the keys that detach end a read
// until restore is called.
func openInput(cmd *cobra.Command) (*input, error) {
	from := cmd.InOrStdin()
	i := &input{lines: bufio.NewScanner(from), restore: func() {}}
	i.lines.Buffer(nil, 2*maxInput)
	i.f, i.typed = from.(*os.File)
	if i.typed = i.typed && IsTerminal(i.f); !i.typed {
		return i, nil
	}
	i.lines.Split(splitTyped)
	return i, i.delimit()
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
	mode.Cc[unix.VEOL], mode.Cc[unix.VEOL2], mode.Cc[unix.VINTR] = ctrlQ, ctrlC, 0 // no key interrupts
	i.restore = func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, before) }       // the terminal may be gone
	return unix.IoctlSetTermios(fd, unix.TCSETS, &mode)
}

// splitTyped splits what is typed into lines, until the keys that detach.
func splitTyped(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if !bytes.ContainsRune(data, '\n') && (bytes.HasSuffix(data, []byte{ctrlP, ctrlQ}) || bytes.HasSuffix(data, []byte{ctrlC})) {
		return 0, nil, errDetached
	}
	return bufio.ScanLines(data, atEOF)
}
