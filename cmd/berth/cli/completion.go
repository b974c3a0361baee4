package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

// completionTimeout bounds how long a shell waits for the daemon.
const completionTimeout = time.Second

// source returns what a shell may offer, such as the ids of a daemon's containers. An
// offer may have a description behind a tab.
type source func(ctx context.Context, d *daemon) ([]string, error)

// ask returns the offers of sources that begin with text. If the daemon does not answer
// in time, there are none: a shell must not print errors into a command line.
func (c *connector) ask(cmd *cobra.Command, text string, sources ...source) []cobra.Completion {
	d, err := c.connect()
	if err != nil {
		return nil
	}
	ctx := cmd.Context()
	if ctx == nil { // cobra completes without the context of the root command
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	var offers []cobra.Completion
	for _, list := range sources {
		found, err := list(ctx, d)
		if err != nil {
			return offers
		}
		for _, offer := range found {
			if strings.HasPrefix(offer, text) {
				offers = append(offers, offer)
			}
		}
	}
	return offers
}

// offer returns a completion of the arguments of a command from sources; see atMost.
func (c *connector) offer(most int, sources ...source) cobra.CompletionFunc {
	return atMost(most, func(cmd *cobra.Command, text string) []cobra.Completion { return c.ask(cmd, text, sources...) })
}

// completeContexts is offer for the names of contexts.
func (c *connector) completeContexts(most int) cobra.CompletionFunc {
	return atMost(most, func(*cobra.Command, string) []cobra.Completion { return c.contextNames() })
}

// atMost returns a completion of at most most arguments, 0 for any number, none of them twice.
func atMost(most int, list func(cmd *cobra.Command, text string) []cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return without(list(cmd, text), args), cobra.ShellCompDirectiveNoFileComp
	}
}

// without returns the offers that are not given yet.
func without(offers []cobra.Completion, given []string) []cobra.Completion {
	return slices.DeleteFunc(offers, func(offer cobra.Completion) bool {
		value, _, _ := strings.Cut(offer, "\t")
		return slices.Contains(given, value)
	})
}

func containerIDs(ctx context.Context, d *daemon) ([]string, error) {
	list, err := d.Containers().List(ctx)
	return names(list, func(s v1.ContainerSummary) string { return s.InternalID + "\t" + string(s.State) }), err
}

func volumeIDs(ctx context.Context, d *daemon) ([]string, error) {
	list, err := d.Volumes().List(ctx)
	return names(list, func(v v1.VolumeView) string { return v.VolumeID + "\t" + strings.Join(v.UsedBy, " ") }), err
}

func tokenIDs(ctx context.Context, d *daemon) ([]string, error) {
	list, err := d.Tokens().List(ctx)
	return names(list, func(k v1.TokenView) string { return k.ID + "\t" + dateOf(k.ExpiresAt) }), err
}

// addCompletions completes the arguments and flags of the commands that take ids.
func addCompletions(root *cobra.Command, c *connector) {
	many, one := c.offer(0, containerIDs), c.offer(1, containerIDs)
	for line, complete := range map[string]cobra.CompletionFunc{
		"start": many, "stop": many, "kill": many, "restart": many, "reinstall": many, "delete": many, "containers": many, "top": many,
		"logs": one, "send": one, "attach": one, "wait": c.completeWait,
		"backup create": c.offer(1, containerIDs, volumeIDs), "backup list": c.offer(1, containerIDs, volumeIDs),
		"backup policy set": c.offer(1, containerIDs, volumeIDs), "backup policy get": c.offer(1, containerIDs, volumeIDs),
		"backup policy delete": c.offer(0, containerIDs, volumeIDs),
		"schedule ls":          one, "schedule set": c.completeSchedules(2), "schedule run": c.completeSchedules(2),
		"schedule rm":    c.completeSchedules(0),
		"transfer start": one,
		"volumes change": c.offer(1, volumeIDs), "volumes delete": c.offer(0, volumeIDs), "token revoke": c.offer(0, tokenIDs),
	} {
		cmd, rest, err := root.Find(strings.Fields(line))
		if err == nil && len(rest) == 0 && cmd.ValidArgsFunction != nil {
			cmd.ValidArgsFunction = complete
		}
	}
	for flag, list := range map[string]source{
		"events --container": containerIDs, "events --volume": volumeIDs,
		"audit --container": containerIDs, "audit --volume": volumeIDs, "token create --container": containerIDs,
	} {
		line, name, _ := strings.Cut(flag, " --")
		cmd, _, err := root.Find(strings.Fields(line))
		if err == nil {
			_ = cmd.RegisterFlagCompletionFunc(name, c.offer(0, list)) // the flag exists
		}
	}
}

// completeWait offers containers, and the states behind the first of them.
func (c *connector) completeWait(cmd *cobra.Command, args []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
	offers := without(c.ask(cmd, text, containerIDs), args)
	if len(args) > 0 {
		for _, state := range waitStates() {
			if strings.HasPrefix(state, text) {
				offers = append(offers, state)
			}
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

// completeFiles completes the id of an address. The argument with index local is a file of
// this host; -1 is none.
func (c *connector) completeFiles(local int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == local {
			return nil, cobra.ShellCompDirectiveDefault
		}
		offers := c.ask(cmd, text, containerIDs, volumeIDs)
		for i := range offers {
			offers[i] = strings.Replace(offers[i], "\t", ":\t", 1)
		}
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
