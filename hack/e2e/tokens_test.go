package e2e_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// uses is the number of concurrent requests with one token.
const uses = 50

// rush sends these requests, each on its own connection, and counts the answers
// by status. Status 0 counts requests without an answer.
func rush(clients []*berthtest.Client, token, method, path string) (answers map[int]int) {
	answers = map[int]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range uses {
		all.Go(func() {
			<-start
			answer, err := clients[i%len(clients)].Try(context.Background(), method, path, nil, "Authorization", "Bearer "+token)
			if err != nil {
				answer.Status = 0
			}
			mu.Lock()
			defer mu.Unlock()
			answers[answer.Status]++
		})
	}
	close(start)
	all.Wait()
	return answers
}

// crowd returns clients that keep enough connections for a rush.
func crowd(t *testing.T, b *berthtest.Berth) (list []*berthtest.Client) {
	t.Helper()
	for range 5 {
		list = append(list, berthtest.NewClient(t, b.Addr, b.Token))
	}
	return list
}

func TestSingleUseTokenHasOneWinner(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	clients, tries := crowd(t, b), rounds(5, 1000)
	began := time.Now()
	for range tries {
		token := mint(t, b, `{"remove_on_use":true}`).Token
		require.Equal(t, map[int]int{200: 1, 401: uses - 1}, rush(clients, token, "GET", "/containers"))
	}
	t.Logf("%d tokens, each with 1 winner of %d, in %s", tries, uses, time.Since(began).Round(time.Millisecond))
}

// TestSpentTokenStaysSpent kills the daemon as soon as the token was used.
func TestSpentTokenStaysSpent(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	for range rounds(2, 20) {
		token := mint(t, b, `{"remove_on_use":true}`).Token
		require.Equal(t, 200, b.Do(t, "GET", "/containers", nil, "Authorization", "Bearer "+token).Status)
		b.Restart(t)
		require.Equal(t, 401, b.Do(t, "GET", "/containers", nil, "Authorization", "Bearer "+token).Status)
	}
}

// TestTokenIsSpentOnceAcrossKills kills the daemon during a rush and sends another
// rush to the next daemon. Every use creates a volume, so the volumes show as well
// as the answers how often the token was accepted.
func TestTokenIsSpentOnceAcrossKills(t *testing.T) {
	t.Parallel()
	b, random := berthtest.Start(t, berthtest.Options{}), dice(t)
	outcomes := map[string]int{}
	made := 0
	for range rounds(4, 60) {
		clients := crowd(t, b)
		token := mint(t, b, `{"remove_on_use":true}`).Token
		after := time.Duration(random.IntN(60_000)) * time.Microsecond
		var first map[int]int
		var both sync.WaitGroup
		both.Go(func() { first = rush(clients, token, "POST", "/volumes") })
		pause(after)
		b.Kill9(t)
		both.Wait()
		b.Run(t)
		b.Ready(t)
		second := rush(crowd(t, b), token, "POST", "/volumes")
		require.Zero(t, second[0], "the second daemon answers every request")
		require.LessOrEqual(t, first[201]+second[201], 1, "%v %v", first, second)
		var list struct{ Volumes []struct{} }
		b.Get(t, "/volumes", &list)
		done := len(list.Volumes) - made
		made = len(list.Volumes)
		require.LessOrEqual(t, done, 1, "%v %v", first, second)
		require.LessOrEqual(t, first[201]+second[201], done, "each success has created a volume")
		outcomes[outcome(first[201], second[201], done)]++
	}
	t.Logf("the winner: %v", outcomes)
}

func outcome(first, second, done int) string {
	switch {
	case first == 1:
		return "in the first life"
	case second == 1:
		return "in the second life"
	case done == 1:
		return "did not hear of it"
	}
	return "was killed before it was served"
}

// TestSocketEndsWithItsToken: a socket is closed when its token expires, also a
// single-use token that was spent to open it.
func TestSocketEndsWithItsToken(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	const ttl = 10 * time.Second
	for _, body := range []string{`{"ttl":"10s","remove_on_use":true}`, `{"ttl":"10s","remove_on_use":false}`} {
		asked := time.Now()
		m := mint(t, b, body)
		minted := time.Now()
		expires, err := time.Parse(time.RFC3339, m.ExpiresAt)
		require.NoError(t, err)
		require.False(t, expires.Before(asked.Add(ttl-time.Second)))
		require.False(t, expires.After(minted.Add(ttl+time.Second)))
		socket, _, err := b.Dial("/ws?token="+m.Token, nil)
		require.NoError(t, err)
		t.Cleanup(socket.Close)
		require.Equal(t, 1008, socket.Ended(t))
		require.Greater(t, time.Since(asked), ttl, "not before it expires")
		require.Less(t, time.Since(minted), time.Minute)
	}
	berthtest.Until(t, wait, "none is counted as open", func() bool { return metric(t, b, "berth_websocket_connections") == 0 })
}
