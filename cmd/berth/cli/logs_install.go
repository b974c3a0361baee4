package cli

import (
	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// installStream prints the output of an installation until it ends.
type installStream struct {
	*logOptions
	cmd    *cobra.Command
	daemon *daemon
	id     string
	line   string // the cursor behind the last line that was printed
	ask    bool   // whether the installation has ended is not known since the last state
}

// followInstall prints past output of installations, and that of the installation in
// progress until it ends. It returns at once if there is none.
func (o *logOptions) followInstall(cmd *cobra.Command, d *daemon, id string) error {
	c, err := d.Containers().Get(cmd.Context(), id)
	if err != nil {
		return err
	}
	line, err := o.printPast(cmd, d, id)
	if err != nil || c.InstallState != v1.Installing {
		return err
	}
	s := &installStream{logOptions: o, cmd: cmd, daemon: d, id: id, line: line}
	return s.run()
}

// run prints the lines of the installation whenever the daemon sends output, and those that
// came after the state that ended the installation.
func (s *installStream) run() error {
	d, ctx := s.daemon, s.cmd.Context()
	d.notices = s.cmd.ErrOrStderr()
	for m, err := range d.Containers().Follow(ctx, s.id, client.OpenOptions{SinceLine: s.line}) {
		d.broken = d.broken && err != nil
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.deliver(m); err != nil {
			return err
		}
		ended, err := s.ended(m)
		if err != nil {
			return err
		}
		if ended {
			break
		}
	}
	return s.printNewLines()
}

// deliver prints a message. Output may be the server's, so it is read again from the lines of
// installations.
func (s *installStream) deliver(m client.Message) error {
	switch m.Event {
	case client.EventStats:
		return nil
	case client.EventConsole:
		return s.printNewLines()
	}
	return s.printOne(s.cmd, m)
}

// ended reports whether the installation has ended. If the daemon does not answer, it is
// asked again at the next message.
func (s *installStream) ended(m client.Message) (bool, error) {
	if m.Event == v1.EventState {
		s.ask = m.Data != string(v1.Installing)
	}
	if !s.ask {
		return false, nil
	}
	c, err := s.daemon.Containers().Get(s.cmd.Context(), s.id)
	if err != nil {
		if client.StatusOf(err)/100 == 4 {
			return false, err
		}
		return false, nil
	}
	s.ask = false
	return c.InstallState != v1.Installing, nil
}

// printNewLines prints the lines behind the cursor.
func (s *installStream) printNewLines() error {
	for {
		logs, err := s.daemon.Containers().Logs(s.cmd.Context(), s.id, client.LogOptions{Install: true, Tail: maxLines, SinceLine: s.line})
		if err != nil {
			return err
		}
		if s.line = logs.Line; len(logs.Lines) == 0 {
			return nil
		}
		if !isText(s.cmd) {
			err = printNext(s.cmd, s.daemon.raw)
		} else {
			err = s.printLines(s.cmd.OutOrStdout(), logs.Lines)
		}
		if err != nil {
			return err
		}
	}
}
