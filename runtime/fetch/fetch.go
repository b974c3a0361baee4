package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

// The limits of a download.
const (
	maxRedirects  = 10
	dialTimeout   = 10 * time.Second
	headerTimeout = 30 * time.Second
	headerBytes   = 64 << 10
	stallTimeout  = 30 * time.Second // without a byte
	totalTimeout  = time.Hour
	leastRate     = 16 << 10 // bytes per second, over each paceWindow
	paceWindow    = 30 * time.Second
)

// Errors that end a download. All errors of this package are texts for clients.
var (
	ErrAddress  = errors.New("the address is not public: files.pull_private is false")
	ErrChecksum = errors.New("the content has another checksum")
	errStalled  = fmt.Errorf("the server sent nothing for %s", stallTimeout)
	errSlow     = fmt.Errorf("the server sent less than %d KiB/s for %s", leastRate>>10, paceWindow)
	errTooLong  = fmt.Errorf("the download took longer than %s", totalTimeout)
	errRedirect = fmt.Errorf("more than %d redirects, or a redirect that is neither http nor https", maxRedirects)
)

// Client downloads URLs. It is safe for concurrent use.
type Client struct {
	http  *http.Client
	stall time.Duration
}

// Dialer returns a dialer that connects to addresses for which allowed returns true at that time; to others it
// returns refused.
func Dialer(allowed func(netip.Addr) bool, refused error) *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !allowed(to.Addr()) {
			return refused
		}
		return nil
	}}
}

// New returns a Client that connects to addresses for which allowed returns true at
// that time.
func New(allowed func(netip.Addr) bool) *Client {
	dialer := Dialer(allowed, ErrAddress)
	transport := &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: headerTimeout,
		MaxResponseHeaderBytes: headerBytes, DisableCompression: true, DisableKeepAlives: true, ForceAttemptHTTP2: false}
	return &Client{stall: stallTimeout, http: &http.Client{Transport: transport,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects || r.URL.Scheme != "http" && r.URL.Scheme != "https" {
				return errRedirect
			}
			r.Header.Del("Referer")
			return nil
		}}}
}

// Get downloads a URL and calls write with its content. It calls progress with the bytes
// received and the announced total; -1 is unknown. If checksum, a SHA-256 in hex, is not
// empty, the content ends with ErrChecksum instead of io.EOF unless it matches: write must
// replace nothing before it has read io.EOF.
func (c *Client) Get(ctx context.Context, url, checksum string, progress func(bytes, total int64), write func(io.Reader) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, totalTimeout, errTooLong)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return errors.New("the URL is not valid")
	}
	request.Header.Set("User-Agent", "berth")
	response, err := c.http.Do(request)
	if err != nil {
		return explain(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %d", response.StatusCode)
	}
	progress(0, response.ContentLength)
	body := &content{body: response.Body, progress: progress, sum: sha256.New(), want: checksum, total: response.ContentLength, stall: c.stall,
		stalled: time.AfterFunc(c.stall, func() { stop(errStalled) })}
	defer body.stalled.Stop()
	err = write(body)
	if failed := body.failed.Load(); failed != nil {
		return explain(ctx, *failed)
	}
	if err != nil && ctx.Err() != nil {
		return explain(ctx, err)
	}
	return err
}

// explain returns the error as a text without addresses of the host's network.
func explain(ctx context.Context, err error) error {
	var dns *net.DNSError
	switch cause := context.Cause(ctx); {
	case errors.Is(err, ErrAddress):
		return ErrAddress
	case errors.Is(err, ErrChecksum):
		return ErrChecksum
	case errors.Is(err, errRedirect):
		return errRedirect
	case errors.Is(err, errSlow):
		return errSlow
	case errors.Is(cause, errStalled), errors.Is(cause, errTooLong):
		return cause
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &dns):
		return errors.New("the name of the server cannot be resolved")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection was closed before the end of the content")
	}
	return errors.New("the server cannot be reached, or its answer is not valid")
}

// content is the body of a response. It keeps its own error apart from those of the
// writer.
type content struct {
	body     io.Reader
	progress func(bytes, total int64)
	stall    time.Duration
	stalled  *time.Timer
	sum      hash.Hash
	want     string
	read     int64
	total    int64
	pace     pace
	failed   atomic.Pointer[error]
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (int, error) {
	began := time.Now()
	n, err := c.body.Read(p)
	if err == nil && c.pace.slow(n, time.Since(began)) {
		err = errSlow
	}
	if n > 0 {
		c.sum.Write(p[:n])
		c.read += int64(n)
		c.stalled.Reset(c.stall)
		c.progress(c.read, c.total)
	}
	if errors.Is(err, io.EOF) && c.want != "" && hex.EncodeToString(c.sum.Sum(nil)) != c.want {
		err = ErrChecksum
	}
	if err != nil && !errors.Is(err, io.EOF) {
		c.failed.Store(&err)
	}
	return n, err
}

// pace measures the rate of a server: only the time that a read took counts, so that a
// slow disk is not held against it. Without a least rate a server that sends a byte now
// and then would hold a permit for hours.
type pace struct {
	took time.Duration
	got  int
}

// slow counts a read, and reports whether the rate of the window that it ends is less
// than leastRate.
func (p *pace) slow(n int, took time.Duration) bool {
	p.got += n
	if p.took += took; p.took < paceWindow {
		return false
	}
	slow := float64(p.got) < leastRate*p.took.Seconds()
	*p = pace{}
	return slow
}
