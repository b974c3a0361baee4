package edge

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/stretchr/testify/require"

	"berth/api/limit"
	v1 "berth/api/v1"
)

// TestWrongTokensAreDelayed: 401s are delayed once an address has sent many wrong
// tokens. Other requests are not.
func TestWrongTokensAreDelayed(t *testing.T) {
	refused := v1.Error{Code: v1.Unauthorized, Message: "no"}
	h := newHarness(t, nil, func(s *Server) {
		s.Add("GET", "/", func(c *fiber.Ctx) error {
			token := c.Get("Authorization")
			if token == "good" {
				return nil
			}
			if token == "" {
				s.MissingToken(c)
			} else {
				s.WrongToken(c)
			}
			return &refused
		})
	})
	send := func(token string) *bufio.Reader {
		c, err := net.Dial("tcp", h.addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.SetDeadline(time.Now().Add(3*time.Minute)))
		_, err = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: localhost\r\n%s\r\n", token)
		require.NoError(t, err)
		return bufio.NewReader(c)
	}
	status := func(r *bufio.Reader) int {
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		return resp.StatusCode
	}
	const wrong = "Authorization: wrong\r\n"
	for range limit.WrongTokens().Burst {
		require.Equal(t, 401, status(send(wrong)))
	}
	slow := func(answer func()) bool {
		began := time.Now()
		answer()
		return time.Since(began) >= failureDelay
	}
	delayed, quick := false, false
	for n := 0; n < limit.WrongTokens().Burst && !delayed; n++ { // one is won back now and then
		delayed = slow(func() { require.Equal(t, 401, status(send(wrong))) })
	}
	require.True(t, delayed)
	for n := 0; n < limit.WrongTokens().Burst && !quick; n++ { // the machine may be busy
		quick = !slow(func() {
			require.Equal(t, 200, status(send("Authorization: good\r\n")))
			require.Equal(t, 401, status(send("")), "a missing token is no guess")
		})
	}
	require.True(t, quick)
}

// TestFailuresPerAddress: failures are counted per address, and a missing token is none.
func TestFailuresPerAddress(t *testing.T) {
	s := New(options(nil))
	many := func(address string, wrong bool) (slow bool) {
		for range limit.WrongTokens().Burst + 1 {
			slow = s.failed(address, wrong)
		}
		return slow
	}
	require.False(t, many("10.0.0.1", false), "no token at all")
	require.True(t, many("10.0.0.1", true))
	require.False(t, s.failed("10.0.0.2", true))
	require.True(t, many("2001:db8::1", true))
	require.True(t, s.failed("2001:db8::ffff", true), "one network")
}
