package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/blob"
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
		return warning(fmt.Sprintf("%s; its clock differs by %s", found, skew.Round(time.Second)),
			"synchronise both clocks (systemd-timesyncd or chrony)")
	case status == http.StatusNotFound || status == http.StatusGone:
		return warning(found+": it may know the URL for POST only", "check the path of remote.url if berth_remote_lag_events grows")
	}
	return ok(found)
}

// checkBackups checks the targets of backups. It writes nothing: it asks for the access
// to the directory, and for the unfinished uploads of the bucket.
func checkBackups(ctx context.Context, e *examination) Result {
	c := e.Config.Config.Backups
	directory := checkBackupPath(e.path(c.Path))
	if directory.Status == OK {
		directory.Message += "; " + pace(c)
	}
	if directory.Status == Fail || !c.S3.Enabled() {
		return directory
	}
	if bucket := checkBucket(ctx, c.S3); bucket.Status != OK || directory.Status == OK {
		return bucket
	}
	return directory
}

// pace describes how many backups run at once, and how fast.
func pace(c v1.BackupsConfig) string {
	if c.Bandwidth == 0 {
		return fmt.Sprintf("%d at once, without a limit of the bandwidth", c.Concurrency)
	}
	return fmt.Sprintf("%d at once, %s per second", c.Concurrency, c.Bandwidth)
}

func checkBackupPath(path string) Result {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ok(path + " does not exist yet: the first backup creates it")
	case err != nil:
		return warning(err.Error(), "run berth doctor as root, or as the user of the daemon")
	case !info.IsDir():
		return failed(path+" is not a directory", "remove it, or set backups.path to a directory")
	case errors.Is(unix.Access(path, unix.W_OK|unix.X_OK), unix.EROFS):
		return failed(path+" is on a read-only file system", "mount it writable, or set backups.path to another directory")
	case unix.Access(path, unix.R_OK|unix.W_OK|unix.X_OK) != nil:
		return warning(path+" is not writable for this user", "run berth doctor as root, or as the user of the daemon")
	case info.Mode().Perm()&0o077 != 0:
		return warning(fmt.Sprintf("%s is open to other users (mode %04o)", path, info.Mode().Perm()), "run chmod 700 on it")
	}
	return ok(path + " is writable")
}

func checkBucket(ctx context.Context, c v1.S3Config) Result {
	target, err := blob.NewS3(blob.S3Options{Endpoint: c.Endpoint, Region: c.Region, Bucket: c.Bucket, Prefix: c.Prefix,
		AccessKey: c.AccessKey, SecretKey: c.SecretKey.Reveal(), PathStyle: c.PathStyle})
	if err == nil {
		err = target.Reach(ctx)
	}
	if err != nil {
		return failed(fmt.Sprintf("the bucket %s at %s cannot be used: %v", c.Bucket, c.Endpoint, err),
			"check backups.s3, the bucket, what its key may do (hack/docs/operator.md), and the host's firewall")
	}
	return ok(fmt.Sprintf("the bucket %s at %s answers", c.Bucket, c.Endpoint))
}

// checkSFTP checks the host key and whether the SFTP server answers. It logs in nowhere.
func checkSFTP(ctx context.Context, e *examination) Result {
	c := e.Config.Config.SFTP
	if !c.Enabled {
		return ok("is not enabled")
	}
	for _, kind := range append([]string{v1.HostKeyED25519}, c.HostKeys...) {
		if key := checkHostKey(e.path(v1.HostKeyFile(c.HostKey, kind))); key.Status != OK {
			return key
		}
	}
	return checkSFTPPort(ctx, c)
}

func checkHostKey(file string) Result {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return warning(file+" does not exist: the next start of the daemon makes a new key, and every client warns",
			"restore the file from a backup, unless this is the first start")
	case err != nil:
		return warning(err.Error(), "run berth doctor as root, or as the user of the daemon")
	case info.Mode().Perm()&0o077 != 0:
		return failed(fmt.Sprintf("%s is open to other users (mode %04o)", file, info.Mode().Perm()), "run chmod 600 on it")
	}
	return ok(file + " is private")
}

// checkSFTPPort reads the greeting of the server.
func checkSFTPPort(ctx context.Context, c v1.SFTPConfig) Result {
	const remedy = "start the daemon, or look for its error in the log"
	host := c.Host
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	address := net.JoinHostPort(host, strconv.Itoa(c.Port))
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return warning("does not answer at "+address, remedy)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	greeting, err := bufio.NewReaderSize(conn, 256).ReadString('\n')
	if err != nil || !strings.HasPrefix(greeting, v1.SFTPVersion) {
		return failed("another program answers at "+address, "set sftp.port to a free port")
	}
	return ok(fmt.Sprintf("answers at %s, for at most %d sessions", address, c.MaxSessions))
}
