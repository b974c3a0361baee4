package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"berth/cmd/berth-wings/importer"
	"berth/cmd/berth-wings/node"
)

// takeover is one call of berth-wings import.
type takeover struct {
	bridge
	dry  bool
	undo string
	stop time.Duration
}

func newImport() *cobra.Command {
	var t takeover
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Take over the servers of a host that runs wings, or give one back",
		Long: "Take over the servers of a host that runs wings: each is stopped, its folder is renamed into a volume of\n" +
			"berth, and it is started again if it ran. wings has to be stopped before; its servers run on until they are\n" +
			"imported. Nothing is copied, so the volumes of berth must be on the file system of the folders. It needs\n" +
			"root, and Docker as the docker command finds it. If it is interrupted, run it again: it continues.\n\n" +
			"--undo gives a server back to wings. Backups that wings has made stay where they are.",
		Example: "  berth-wings import --dry-run\n" +
			"  systemctl disable --now wings && berth-wings import\n" +
			"  berth-wings import --undo a1a1a1a1-1111-4111-8111-a1a1a1a1a1a1",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.run(cmd.Context(), os.Environ(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&t.path, "config", defaultConfig, "`path` of the node's file")
	flags.BoolVar(&t.dry, "dry-run", false, "show what would be done")
	flags.StringVar(&t.undo, "undo", "", "give the server of this `UUID` back to wings")
	flags.DurationVar(&t.stop, "stop-timeout", 15*time.Second, "how long a server may take to stop; then it is killed")
	return cmd
}

// run does what the flags say.
func (t takeover) run(ctx context.Context, environ []string, out io.Writer) error {
	o, err := t.open(environ, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer o.Berth.Close()
	n, err := node.New(o)
	if err != nil {
		return err
	}
	c := o.File.Config
	i, err := importer.New(importer.Options{Config: c, Berth: o.Berth, Panel: o.Panel, Node: n, Stop: t.stop})
	if err != nil {
		return err
	}
	defer i.Close()
	if !t.dry {
		lock, err := listen(ctx, c.API) // held meanwhile, so that neither wings nor the bridge starts
		if err != nil {
			return fmt.Errorf("%w: stop wings (systemctl disable --now wings) and berth-wings: servers run on meanwhile", err)
		}
		defer lock.Close()
	}
	if t.undo != "" {
		return i.Undo(ctx, t.undo)
	}
	plan, err := i.Plan(ctx)
	if err != nil {
		return err
	}
	if err := show(out, plan); err != nil || t.dry {
		return err
	}
	return importAll(ctx, i, plan, out)
}

// importAll imports the servers of a plan, one after the other. One that fails keeps no other from its turn.
func importAll(ctx context.Context, i *importer.Importer, plan importer.Plan, out io.Writer) error {
	failed := 0
	for _, s := range plan.Servers {
		if s.Imported {
			continue
		}
		err, began := s.Refused, time.Now()
		if err == nil {
			err = i.Import(ctx, s)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted: run it again to continue")
		}
		result := fmt.Sprintf("imported in %s", time.Since(began).Round(time.Millisecond))
		if err != nil {
			result = "not imported: " + err.Error()
			failed++
		}
		if _, err := fmt.Fprintf(out, "%s %s\n", s.UUID, result); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d servers are not imported", failed)
	}
	return nil
}

// show prints a plan.
func show(out io.Writer, plan importer.Plan) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tNAME\tMIB\tACTION")
	for _, s := range plan.Servers {
		action := "move"
		switch {
		case s.Imported:
			action = "none: it is imported"
		case s.Refused != nil:
			action = "none: " + s.Refused.Error()
		case s.Runs:
			action = "stop, move, start"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", s.UUID, clean(s.Name), (s.Size+1<<20-1)>>20, action)
		for _, note := range s.Notes {
			fmt.Fprintf(w, "\t\t\tleft out: %s\n", clean(note))
		}
	}
	for _, name := range plan.Left {
		fmt.Fprintf(w, "%s\t\t\tnone: it is not a server of the panel\n", clean(name))
	}
	if plan.Backups > 0 {
		fmt.Fprintf(w, "\n%d backups of wings stay where they are; the panel's users can download, restore and delete them\n", plan.Backups)
	}
	return w.Flush()
}

// clean returns a text of customers without what would change the terminal.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}
