package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	v1 "berth/api/v1"
)

// askPanel sends a HEAD request with the token to remote.url. HEAD changes nothing at a
// panel that keeps to HTTP, whereas it may count a batch, even an empty one, as contact.
// The response is nil if the panel is not configured.
func askPanel(ctx context.Context, c v1.RemoteConfig, version string) (*http.Response, error) {
	if !c.Enabled {
		return nil, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, c.URL, nil)
	if err != nil {
		return nil, errors.New("remote.url is not a valid URL")
	}
	request.Header.Set("Authorization", "Bearer "+c.Token.Reveal())
	request.Header.Set("User-Agent", "berth-doctor/"+version)
	// As for batches, no redirect is followed, so that the token reaches only that host.
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, CheckRedirect: noRedirect}).Do(request)
	if err == nil {
		return response, response.Body.Close()
	}
	var wrapped *url.Error // it holds the URL, which may hold a secret
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return nil, err
}

func checkPanel(_ context.Context, e *examination) Result {
	if !e.Config.Config.Remote.Enabled {
		return ok("remote.enabled is false: berth sends no transitions")
	}
	response, err := e.panel()
	if err != nil {
		return failed("does not answer: "+err.Error(), "check remote.url, the name's resolution, its certificate, and the host's firewall")
	}
	lag, _ := e.daemon().value("berth_remote_lag_events")
	return judgePanel(response.StatusCode, skew(response, time.Now()), lag)
}

// skew returns how far the clock of a response is ahead.
func skew(r *http.Response, now time.Time) time.Duration {
	at, err := http.ParseTime(r.Header.Get("Date"))
	if err != nil {
		return 0
	}
	return at.Sub(now)
}

// maxSkew is the difference of the two clocks that is not reported.
const maxSkew = time.Minute

// maxLag is the number of waiting transitions from which on a panel that answers is
// suspected to refuse them.
const maxLag = 1000

func judgePanel(status int, skew time.Duration, lag float64) Result {
	found := fmt.Sprintf("answers HEAD with %d", status)
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return failed(found+": it refuses the token", "set remote.token to the one that the panel has for this node, then systemctl reload berth")
	case status >= 500:
		return failed(found, "read the panel's log; berth repeats its batches until it accepts them")
	case status >= 300 && status < 400:
		return failed(found+": berth follows no redirects", "set remote.url to the URL that the panel redirects to")
	case lag > maxLag:
		return warning(fmt.Sprintf("%s, and %.0f transitions wait for it", found, lag), "search berth's log for \"panel\"")
	case skew.Abs() > maxSkew:
		return warning(fmt.Sprintf("%s; its clock differs by %s", found, skew.Round(time.Second)), "synchronise both clocks (systemd-timesyncd or chrony)")
	case status == http.StatusNotFound || status == http.StatusGone:
		return warning(found+": it may know the URL for POST only", "check the path of remote.url if berth_remote_lag_events grows")
	}
	return ok(found)
}
