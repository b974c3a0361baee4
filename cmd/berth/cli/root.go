package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"berth/cmd/berth/config"
)

// ErrReported is returned by a command that has printed the reason for its failure.
var ErrReported = errors.New("errors were reported")

// Options are the parts of the command line that main provides.
type Options struct {
	Version string
	Environ []string // "NAME=value"

	// Serve runs the daemon until ctx ends. A person can read out.
	Serve func(ctx context.Context, l *config.Loader, out io.Writer) error
}

// NewRoot returns the command `berth` with all of its subcommands.
func NewRoot(o Options) *cobra.Command {
	root := &cobra.Command{
		Use:           "berth",
		Short:         "Runs containers on this host for hosting panels and keeps them in their desired state",
		Version:       o.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringP("output", "o", "text", "output format: text or json")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]cobra.Completion{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	root.PersistentPreRunE = checkOutput
	l := config.NewLoader(o.Environ)
	root.PersistentFlags().StringVar(&l.File, "config", "",
		"configuration file (default $"+config.EnvPrefix+"CONFIG, else "+config.DefaultPath+")")

	const daemon, client = "daemon", "client"
	root.AddGroup(&cobra.Group{ID: daemon, Title: "Daemon:"}, &cobra.Group{ID: client, Title: "Commands for a running daemon:"})
	addTo(root, daemon, newServeCommand(l, o.Serve), newConfigCommand(l))
	c := &connector{loader: l}
	addTo(root, client, newStatusCommand(c), newContainersCommand(c), newApplyCommand(c))
	addTo(root, client, newVerbCommands(c)...)
	addTo(root, client, newWaitCommand(c), newLogsCommand(c), newSendCommand(c), newEventsCommand(c), newDeleteCommand(c),
		newVolumesCommand(c), newPortsCommand(c), newTokenCommand(c))
	return root
}

func addTo(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, cmd := range commands {
		cmd.GroupID = group
		root.AddCommand(cmd)
	}
}

// withSubcommands makes cmd a command that prints its help if it is called alone,
// and fails if it is called with an unknown subcommand.
func withSubcommands(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subcommands...)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

func newServeCommand(l *config.Loader, serve func(context.Context, *config.Loader, io.Writer) error) *cobra.Command {
	return withOverrides(l, &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: "Run the daemon until SIGTERM or Ctrl-C; its containers continue to run. SIGHUP reloads the\n" +
			"configuration. If there is no configuration, berth writes one with a fresh token, as\n" +
			"`berth config init` does.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), l, cmd.ErrOrStderr()) },
	})
}

// withOverrides adds to cmd a flag for each key of the configuration but secrets.
func withOverrides(l *config.Loader, cmd *cobra.Command) *cobra.Command {
	for _, o := range l.Overrides() {
		cmd.Flags().Var(o, o.Name, "overrides "+o.Name+" of the configuration")
		if o.IsBool() {
			cmd.Flags().Lookup(o.Name).NoOptDefVal = "true"
		}
	}
	return cmd
}
