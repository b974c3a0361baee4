package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// addClient adds the commands that speak to a running daemon.
func addClient(root *cobra.Command, c *cli) {
	const daemon, client = "daemon", "client"
	root.AddGroup(&cobra.Group{ID: daemon, Title: "The daemon:"}, &cobra.Group{ID: client, Title: "Speaking to a running daemon:"})
	for _, cmd := range root.Commands() {
		cmd.GroupID = daemon
	}
	commands := append([]*cobra.Command{newStatusCommand(c), newContainersCommand(c), newApplyCommand(c)}, newVerbCommands(c)...)
	commands = append(commands, newWaitCommand(c), newLogsCommand(c), newSendCommand(c), newEventsCommand(c), newDeleteCommand(c),
		newVolumesCommand(c), newPortsCommand(c), newTokenCommand(c))
	for _, cmd := range commands {
		cmd.GroupID = client
		root.AddCommand(cmd)
	}
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		hideKeys(cmd)
		help(cmd, args)
	})
}

// hideKeys keeps the forty keys of the configuration, which every command takes
// as flags, out of the help of all but serve.
func hideKeys(cmd *cobra.Command) {
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		f.Hidden = strings.Contains(f.Name, ".") && cmd.Name() != "serve"
	})
}
