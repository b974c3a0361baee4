package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"berth/api/client"
	"berth/cmd/berth/config"
)

// Options are the parts of the command line that main provides.
type Options struct {
	Version string
	Environ []string // "NAME=value"

	// Serve runs the daemon until ctx ends. A person can read out.
	Serve func(ctx context.Context, l *config.Loader, out io.Writer) error

	// RestoreStore replaces the store of a data directory by a backup, and returns where
	// the store before is kept; empty: there was none.
	RestoreStore func(dataPath string, backup *os.File) (kept string, err error)

	// RemoveRules removes the firewall rules of the store in a data directory from this
	// host, and reports whether there were any.
	RemoveRules func(ctx context.Context, dataPath string) (changed bool, err error)
}

// NewRoot returns the command `berth` with all of its subcommands.
func NewRoot(o Options) *cobra.Command {
	root := &cobra.Command{
		Use:           "berth",
		Short:         "Runs containers on this host for hosting panels and keeps them in their desired state",
		Long:          "Runs containers on this host for hosting panels and keeps them in their desired state.\n\n" + exitHelp,
		Example:       "  berth ps\n  berth logs survival -f\n  berth apply -f survival.yaml --dry-run",
		Version:       o.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	l := config.NewLoader(o.Environ)
	addGlobalFlags(root, l)

	const daemon, client = "daemon", "client"
	root.AddGroup(&cobra.Group{ID: daemon, Title: "Daemon:"}, &cobra.Group{ID: client, Title: "Commands for a running daemon:"})
	root.DisableSuggestions = true
	c := &connector{loader: l}
	addTo(root, daemon, newServeCommand(l, o.Serve), newConfigCommand(l), newDoctorCommand(c, o.Version),
		newStoreCommand(c, o.RestoreStore), newFirewallCommand(c, o.RemoveRules))
	addTo(root, client, newVersionCommand(c, o.Version), newNodeCommand(c), newPsCommand(c), newTopCommand(c),
		newContainersCommand(c), newApplyCommand(c), newImportCommand(c))
	addTo(root, client, newVerbCommands(c)...)
	addTo(root, client, newWaitCommand(c), newLogsCommand(c), newAttachCommand(c), newSendCommand(c), newEventsCommand(c), newAuditCommand(c),
		newDeleteCommand(c), newVolumesCommand(c), newBackupCommand(c), newScheduleCommand(c), newTransferCommand(c), newFilesCommand(c),
		newPortsCommand(c), newTokenCommand(c), newContextCommand(c))
	root.RunE = help
	addCompletions(root, c)
	classified(root)
	return root
}

// addGlobalFlags adds the flags of every command, and their checks.
func addGlobalFlags(root *cobra.Command, l *config.Loader) {
	flags := root.PersistentFlags()
	flags.StringP("output", "o", formatTable, "output format: table, wide, json, yaml or name")
	flags.StringVar(&l.File, "config", "", "configuration file (default $"+config.EnvPrefix+"CONFIG, else "+config.DefaultPath+")")
	complete(root, "output", func(cmd *cobra.Command) []cobra.Completion { return formats(cmd) })
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return checkOutput(cmd) }
}

// complete makes the shell offer the values of a flag that list returns.
func complete(cmd *cobra.Command, flag string, list func(*cobra.Command) []cobra.Completion) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return list(cmd), cobra.ShellCompDirectiveNoFileComp
	}) // it fails only for a flag that does not exist
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
	cmd.Args, cmd.RunE = cobra.NoArgs, help
	return cmd
}

func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

func newServeCommand(l *config.Loader, serve func(context.Context, *config.Loader, io.Writer) error) *cobra.Command {
	return withOverrides(l, &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: "Run the daemon until SIGTERM or Ctrl-C; its containers continue to run. SIGHUP reloads the\n" +
			"configuration. If there is no configuration, berth writes one with a fresh token, as\n" +
			"`berth config init` does.",
		Example: "  berth serve\n  berth serve --config ~/berth.yaml --log.level debug",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), l, cmd.ErrOrStderr()) },
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

// addURLFlag adds --url. A wrong one is an error of usage, before anything is sent.
func (c *connector) addURLFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().Func("url", "`URL` of the daemon (default $"+envURL+", else from "+usage+")", func(text string) error {
		c.url = text
		return checkURL(text)
	})
}

func checkURL(text string) error {
	_, err := client.New(client.Options{URL: text})
	return err
}
