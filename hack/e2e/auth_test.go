package e2e_test

import (
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// routes are the endpoints that require a token.
var routes = strings.Fields(`POST:/auth/tokens POST:/volumes POST:/volumes/deadbeef/files POST:/volumes/deadbeef/folders
	POST:/volumes/deadbeef/copy GET:/volumes/deadbeef/files POST:/volumes/deadbeef/compress POST:/volumes/deadbeef/decompress
	POST:/network/ports GET:/network/ports GET:/network/ports/127.0.0.1/1 GET:/network/ports/random PUT:/network/ports/127.0.0.1/1/use
	DELETE:/network/ports/127.0.0.1/1 POST:/network/ports/bulk-delete POST:/containers GET:/containers/mc GET:/containers
	DELETE:/containers/mc POST:/containers/mc/start POST:/containers/mc/kill POST:/containers/mc/restart POST:/containers/mc/reinstall
	POST:/containers/mc/rebind-network GET:/remote/config POST:/remote/config/reload`)

func TestRoutesRequireTokenAndVendor(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	for _, route := range routes {
		method, path, _ := strings.Cut(route, ":")
		for _, c := range []struct {
			header []string
			status int
			text   string
		}{
			{[]string{"Authorization", ""}, 401, "Missing or invalid authorization token"},
			{[]string{"Authorization", "", "Accept", ""}, 401, "Missing or invalid authorization token"},
			{[]string{"Authorization", "Bearer " + berthtest.NewToken()}, 401, "Missing or invalid authorization token"},
			{[]string{"Authorization", b.Token}, 401, "Missing or invalid authorization token"},
			{[]string{"Accept", ""}, 403, "Invalid vendor header"},
			{[]string{"Accept", "*/*"}, 403, "Invalid vendor header"},
			{[]string{"Accept", "Application/vnd.otherv1+json"}, 403, "Invalid vendor header"},
			{[]string{"Accept", "Application/vnd.berthv2+json"}, 403, "Invalid vendor header"},
		} {
			got := b.Do(t, method, path, nil, c.header...)
			require.Equal(t, c.status, got.Status, "%s %v", route, c.header)
			require.JSONEq(t, wrong(c.text), string(got.Body), route)
		}
	}
	for _, accept := range []string{"application/VND.BERTHV1+json", "text/html, Application/vnd.berthv1+json;q=0.5"} {
		require.Equal(t, 200, b.Do(t, "GET", "/containers", nil, "Accept", accept).Status, accept)
	}
	require.Empty(t, b.Pool(t), "nothing was changed by what was refused")
}

type minted struct {
	Token     string
	ID        string
	ExpiresAt string `json:"expires_at"`
}

func mint(t *testing.T, b *berthtest.Berth, body string) (m minted) {
	t.Helper()
	answer := b.Do(t, "POST", "/auth/tokens", body)
	require.Equal(t, 200, answer.Status, string(answer.Body))
	answer.Decode(t, &m)
	return m
}

func TestTokens(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	status := func(token string) int {
		return b.Do(t, "GET", "/containers", nil, "Authorization", "Bearer "+token).Status
	}
	long := mint(t, b, `{"ttl":"1h","remove_on_use":false}`)
	require.Regexp(t, regexp.MustCompile(`^berth_[0-9a-f]{32}$`), long.Token)
	expires, err := time.Parse("2006-01-02T15:04:05Z07:00", long.ExpiresAt)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(long.ExpiresAt, "Z"))
	require.WithinDuration(t, time.Now().Add(time.Hour), expires, time.Minute)
	require.Equal(t, 200, status(long.Token))

	short := mint(t, b, `{"ttl":"1s","remove_on_use":false}`)
	berthtest.Until(t, wait, "the token expires", func() bool { return status(short.Token) == 401 })

	once := mint(t, b, `{"ttl":"1h","remove_on_use":true}`)
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if status(once.Token) == 200 {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, won.Load(), "exactly one use")

	b.Restart(t)
	require.Equal(t, 200, status(long.Token), "tokens survive the daemon")
	require.Equal(t, 401, status(once.Token))
	for _, ttl := range []string{"0s", "-1h", "soon", "31d", ""} {
		got := b.Do(t, "POST", "/auth/tokens", `{"ttl":"`+ttl+`"}`)
		require.Equal(t, 400, got.Status, ttl)
	}
	require.NotContains(t, b.Log(), strings.TrimPrefix(long.Token, "berth_"))
}
