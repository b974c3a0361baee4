package main

import "github.com/spf13/cobra"

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
}
