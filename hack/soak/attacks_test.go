package soak_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// attacksKey is the variable of the environment that chooses the attacks; see doc.go.
const attacksKey = "BERTH_SOAK_ATTACKS"

// attack is one kind of request that a hostile client repeats.
type attack struct {
	name string
	pace time.Duration // the pause after each: the machine is shared by the daemon and its attackers
	once func(*hostileClient, context.Context)
}

func allAttacks() []attack {
	return []attack{
		{"guesses", 500 * time.Millisecond, (*hostileClient).spendWrongTokens},
		{"tokens", 500 * time.Millisecond, (*hostileClient).mintTokens},
		{"power", 500 * time.Millisecond, (*hostileClient).changePower},
		{"search", 2 * time.Second, (*hostileClient).searchDeepTree},
		{"bodies", 2 * time.Second, (*hostileClient).sendLargeBodies},
		{"logs", 2 * time.Second, (*hostileClient).readLogs},
		{"archive", 2 * time.Second, (*hostileClient).archiveSparseFile},
		{"specs", 2 * time.Second, (*hostileClient).applySpecs},
		{"tickets", 2 * time.Second, (*hostileClient).spendTickets},
		{"reads", 2 * time.Second, (*hostileClient).readEverything},
		{"keys", 2 * time.Second, (*hostileClient).useNewKeys},
		{"commands", 2 * time.Second, (*hostileClient).queueCommands},
		{"refusals", 2 * time.Second, (*hostileClient).fillAudit},
		{"sizes", 5 * time.Second, (*hostileClient).resizeTerminal},
		{"drips", 5 * time.Second, (*hostileClient).dripBodies},
		{"policies", 30 * time.Second, (*hostileClient).putPolicies},
		{"restores", 5 * time.Second, (*hostileClient).restoreByTurns},
		{"sockets", 5 * time.Second, (*hostileClient).openSilentSockets},
		{"uploads", 5 * time.Second, (*hostileClient).dripUploads},
		{"logins", 5 * time.Second, (*hostileClient).floodLogins},
		{"connections", 5 * time.Second, (*hostileClient).holdConnections},
	}
}

// chosenAttacks returns the attacks that text names: a list such as "search,sockets", "none",
// or all but those after a minus, such as "-search,sockets". An empty text names all.
func chosenAttacks(text string) ([]attack, error) {
	all := allAttacks()
	if text == "" {
		return all, nil
	}
	if text == "none" {
		return nil, nil
	}
	list, without := strings.CutPrefix(text, "-")
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.ContainsFunc(all, func(a attack) bool { return a.name == name }) {
			return nil, fmt.Errorf("%s: unknown attack %q", attacksKey, name)
		}
	}
	return slices.DeleteFunc(all, func(a attack) bool { return slices.Contains(names, a.name) == without }), nil
}

// attack repeats each of the attacks until ctx ends.
func (h *hostileClient) attack(ctx context.Context, group *sync.WaitGroup, attacks []attack) {
	for _, a := range attacks {
		group.Go(func() {
			for ctx.Err() == nil {
				a.once(h, ctx)
				sleep(ctx, a.pace)
			}
		})
	}
}

func namesOf(attacks []attack) (names []string) {
	for _, a := range attacks {
		names = append(names, a.name)
	}
	return names
}

// requireAttacks fails the test before it starts anything if the environment names an unknown attack.
func requireAttacks(t *testing.T) []attack {
	t.Helper()
	attacks, err := chosenAttacks(os.Getenv(attacksKey))
	require.NoError(t, err)
	return attacks
}

func TestChosenAttacks(t *testing.T) {
	for text, want := range map[string]int{"": 21, "none": 0, "search": 1, "search,sockets": 2, "-search,sockets": 19} {
		got, err := chosenAttacks(text)
		require.NoError(t, err)
		require.Len(t, got, want, text)
	}
	only, err := chosenAttacks("search,sockets")
	require.NoError(t, err)
	require.Equal(t, []string{"search", "sockets"}, namesOf(only))
	_, err = chosenAttacks("-serch")
	require.ErrorContains(t, err, `unknown attack "serch"`)
}
