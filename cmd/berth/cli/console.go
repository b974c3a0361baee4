package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	mobyterm "github.com/moby/term"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// console is where attach reads lines and prints output. On a terminal, the line that
// is being typed stays below the output.
type console struct {
	line       func() (string, error) // waits for the next line; errDetached, or io.EOF after the last one
	out, notes io.Writer
	edits      bool // on a terminal

	stop  func() // ends line
	close func() // restores the terminal; can be called again
}

// openConsole opens the standard input and output of a command. A terminal is in raw
// mode until close is called.
func openConsole(cmd *cobra.Command, o attachOptions, keys []byte) (*console, error) {
	c := &console{out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), stop: func() {}, close: func() {}}
	if o.raw {
		c.out = unfiltered(c.out)
	}
	if o.noStdin {
		c.line = func() (string, error) { return "", io.EOF }
		return c, nil
	}
	f, is := cmd.InOrStdin().(*os.File)
	if !is {
		c.line = scanLines(cmd.InOrStdin())
		return c, nil
	}
	in, err := newInput(f)
	if err != nil {
		return nil, err
	}
	c.stop, c.close = sync.OnceFunc(in.stop), sync.OnceFunc(in.close)
	if screen := terminalOf(c.out); screen != nil && isText(cmd) && IsTerminal(f) {
		err = c.edit(in, screen, o.raw, keys)
	} else {
		c.line = scanLines(in)
	}
	if err != nil {
		c.stop()
		c.close()
		return nil, err
	}
	return c, nil
}

// scanLines returns the lines of a file.
func scanLines(r io.Reader) func() (string, error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 2*maxInput)
	return func() (string, error) {
		if s.Scan() {
			return s.Text(), nil
		}
		if s.Err() != nil {
			return "", s.Err()
		}
		return "", io.EOF
	}
}

// edit sets the terminal to raw mode, and lets a person edit lines.
func (c *console) edit(in *input, screen *os.File, raw bool, keys []byte) error {
	fd := int(in.f.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return err
	}
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{mobyterm.NewEscapeProxy(in, keys), screen}, "")
	stopResizing := resize(t, screen)
	closeInput := c.close
	c.close = sync.OnceFunc(func() {
		stopResizing()
		_ = term.Restore(fd, before) // the terminal is gone
		closeInput()
	})
	c.edits, c.out, c.notes = true, t, &terminal{out: t}
	if !raw {
		c.out = &terminal{out: t}
	}
	c.line = func() (string, error) {
		line, err := t.ReadLine()
		if errors.Is(err, io.EOF) || errors.As(err, &mobyterm.EscapeError{}) {
			err = errDetached
		}
		return line, err
	}
	return nil
}

// resize makes t as wide as the terminal, also after it was resized, until stop is called.
func resize(t *term.Terminal, screen *os.File) (stop func()) {
	fit := func() {
		if width, height, err := term.GetSize(int(screen.Fd())); err == nil && width > 0 {
			_ = t.SetSize(width, height) // the next write returns the error
		}
	}
	fit()
	resized, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(resized, syscall.SIGWINCH)
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-resized:
				fit()
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(resized)
		close(done)
		watching.Wait()
	}
}
