package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	mobyterm "github.com/moby/term"
	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// maxInput is the length of the longest line that attach sends, in bytes. The daemon
// accepts messages of 64 KiB, in which a control character takes six bytes.
const maxInput = 8 << 10

// errDetached is the end of an attachment that a person has ended.
var errDetached = errors.New("detached")

// attachOptions are the flags of attach.
type attachOptions struct {
	noStdin, raw bool
	keys         string
	tail         int
}

func newAttachCommand(c *connector) *cobra.Command {
	var o attachOptions
	cmd := c.command(withoutNames(&cobra.Command{
		Use:   "attach <id>",
		Short: "Follow a container's console and write lines to it",
		Long: "Follow a container's console, and write the lines that are typed to it. On a terminal, lines can be edited,\n" +
			"the arrow keys recall earlier ones, and nothing is sent before Enter. The container runs on after the detach\n" +
			"keys, Ctrl-C or Ctrl-D. Without a terminal, lines of standard input are sent; after its end the command\n" +
			"continues to follow.",
		Example: "  berth attach survival\n  berth attach survival --no-stdin --tail 0",
		Args:    cobra.ExactArgs(1),
	}), func(cmd *cobra.Command, d *daemon, args []string) error {
		keys, err := mobyterm.ToBytes(o.keys)
		if err != nil {
			return withCode(exitUsage, fmt.Errorf("--detach-keys: %w", err))
		}
		if err := attach(cmd, d, args[0], o, keys); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return nil
	})
	flags := cmd.Flags()
	flags.BoolVar(&o.noStdin, "no-stdin", false, "only follow the console")
	flags.BoolVar(&o.raw, "raw", false, "write control characters to a terminal unescaped")
	flags.StringVar(&o.keys, "detach-keys", "ctrl-p,ctrl-q", "keys that detach, such as ctrl-a or ctrl-p,ctrl-q")
	flags.IntVarP(&o.tail, "tail", "n", 20, "number of past lines, 0 to 10000")
	return cmd
}

// attach follows a console and sends lines to it until the container is deleted, or the
// person detaches. A detach and an interrupt are no errors. A broken stream is opened
// again.
func attach(cmd *cobra.Command, d *daemon, id string, o attachOptions, keys []byte) error {
	parent, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP, syscall.SIGQUIT) // so that the terminal is restored
	defer stop()
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	c, err := d.Containers().Get(ctx, id)
	if err != nil {
		return err
	}
	con, err := openConsole(cmd, o, keys)
	if err != nil {
		return err
	}
	defer con.close()
	d.notices = con.notes
	a := &attachment{cmd: cmd, daemon: d, id: id, console: con, echoes: c.TTY == nil || *c.TTY}
	var reading sync.WaitGroup
	reading.Go(func() {
		if err := a.input(ctx); err != nil {
			end(err) // and the stream
		}
	})
	end(a.follow(ctx, o.tail))
	con.stop()
	reading.Wait()
	con.close()
	switch err := context.Cause(ctx); {
	case parent.Err() != nil:
		return nil
	case errors.Is(err, errDetached):
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "berth: detached from %s\n", id)
		return err
	default:
		return err
	}
}

// attachment connects a container with a console.
type attachment struct {
	cmd     *cobra.Command
	daemon  *daemon
	id      string
	console *console
	echoes  bool // the container has a terminal, which prints what is written to it

	mu   sync.Mutex
	sent []echo
}

// echo is a line that a container's terminal will print, and the person has seen.
type echo struct {
	line  string
	until time.Time // when it is not expected any more
}

// echoWait is how long after a line its echo is expected.
const echoWait = 5 * time.Second

// maxEchoes is how many lines are expected to be echoed.
const maxEchoes = 32

// input sends lines until there are no more. It returns errDetached if a person has
// ended them, and nil at the end of a file.
func (a *attachment) input(ctx context.Context) error {
	for {
		line, err := a.console.line()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(line) > maxInput:
			a.note("the line is longer than " + v1.Size(maxInput).String() + " and was not sent")
			continue
		}
		a.expect(line)
		if err := a.daemon.Containers().Send(ctx, a.id, line); err != nil && ctx.Err() == nil {
			a.note("the line was not sent: " + err.Error())
		}
	}
}

// expect remembers a line whose echo is not shown.
func (a *attachment) expect(line string) {
	if !a.echoes || !a.console.edits || line == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.sent) < maxEchoes {
		a.sent = append(a.sent, echo{line, time.Now().Add(echoWait)})
	}
}

// isEcho reports whether a line of the console is the echo of one that was sent.
func (a *attachment) isEcho(line string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.sent = slices.DeleteFunc(a.sent, func(e echo) bool { return now.After(e.until) })
	if len(a.sent) == 0 || strings.TrimRight(line, "\r\n") != a.sent[0].line {
		return false
	}
	a.sent = a.sent[1:]
	return true
}

// follow prints messages until there are no more.
func (a *attachment) follow(ctx context.Context, tail int) error {
	for m, err := range a.daemon.Containers().Follow(ctx, a.id, client.OpenOptions{Tail: tail}) {
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

func (a *attachment) print(m client.Message) (err error) {
	switch {
	case !isText(a.cmd):
		return printNext(a.cmd, m.JSON)
	case m.Event == client.EventConsole:
		for line := range strings.Lines(m.Data) {
			if err == nil && !a.isEcho(line) {
				_, err = io.WriteString(a.console.out, line)
			}
		}
	case m.Event == client.EventLogs:
		_, err = io.WriteString(a.console.out, m.Data)
	case m.Event == v1.EventState:
		a.note("state is " + m.Data)
	case m.Event == v1.EventMessage:
		a.note(m.Data)
	}
	return err
}

// note prints a message of berth. The next line of the console fails if this does.
func (a *attachment) note(text string) {
	_, _ = fmt.Fprintf(a.console.notes, "berth: %s\n", text)
}
