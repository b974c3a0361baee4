package edge

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/stretchr/testify/require"

	"berth/api/limit"
)

func TestRequestLog(t *testing.T) {
	log := &lines{}
	answer := func(c *fiber.Ctx) error { SetToken(c, c.Get("Name", ""), ""); return c.SendString("x") }
	h := newHarness(t, log, func(s *Server) {
		s.Add("POST", "/volumes", answer)
		s.Add("GET", "/volumes", answer)
		s.Add("POST", "/volumes/:id/files", answer)
		s.Add("PUT", "/containers/:id", func(c *fiber.Ctx) error { CallOf(c).DryRun = true; return answer(c) })
		s.Add("POST", "/refused", func(c *fiber.Ctx) error { return ErrMethod })
	})
	send := func(method, path, token string) {
		req, err := http.NewRequest(method, "http://"+h.addr+path, nil)
		require.NoError(t, err)
		req.Header.Set("Name", token)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_ = resp.Body.Close()
	}
	send("POST", "/volumes?token=berth_secret", "t-1")
	send("POST", "/volumes", "")
	send("GET", "/volumes", "t-1")
	send("PUT", "/containers/mc?dry_run=true", "t-1")
	send("POST", "/refused", "t-1")
	require.Eventually(t, func() bool { return strings.Count(log.String(), "\n") >= 2 }, time.Minute, time.Millisecond)
	written := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, written, 2, "requests that read, dry runs, and those without a token, are logged at debug")
	for i, token := range []string{"t-1", "administrator"} {
		require.Regexp(t, regexp.MustCompile(`level=INFO msg=request method=POST path=/volumes status=200 address=127\.0\.0\.1 request=\S+ took=\S+ token=`+token+`$`), written[i])
	}
	send("POST", "/volumes/berth_"+strings.Repeat("a1", 16)+"/files", "t-1")
	require.NotContains(t, log.String(), "berth_a1")
	for range 2 * limit.RequestLines().Burst {
		send("POST", "/volumes", "flood")
	}
	require.Less(t, strings.Count(log.String(), "token=flood"), 2*limit.RequestLines().Burst)
	require.Eventually(t, func() bool {
		send("POST", "/volumes", "flood")
		return strings.Contains(log.String(), "skipped=")
	}, time.Minute, 10*time.Millisecond, "the lines left out are counted")
}
