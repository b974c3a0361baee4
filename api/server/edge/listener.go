package edge

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Bounds of the backoff between failed calls of Accept.
const (
	acceptRetryMin = 5 * time.Millisecond
	acceptRetryMax = 500 * time.Millisecond
)

// acceptLogEvery is the least time between two log lines about failed Accepts.
const acceptLogEvery = 10 * time.Second

// listener accepts connections until it is closed. It retries after every error of
// Accept: EMFILE, ENFILE, ENOBUFS and ENOMEM are temporary, and of an unknown
// error it assumes the same.
type listener struct {
	net.Listener
	conns   *connections
	log     *slog.Logger
	closed  chan struct{}
	closing func() error // calls close once

	failed int       // failed Accepts since the last log line
	logged time.Time // time of the last log line
}

func newListener(ln net.Listener, conns *connections, log *slog.Logger) *listener {
	l := &listener{Listener: ln, conns: conns, log: log, closed: make(chan struct{})}
	l.closing = sync.OnceValue(l.close)
	return l
}

// Accept returns the next connection. Its only error is net.ErrClosed.
func (l *listener) Accept() (net.Conn, error) {
	delay := acceptRetryMin
	for {
		c, err := l.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if err != nil {
			l.conns.trim()
			l.logFailure(err)
			if !l.pause(delay) {
				return nil, net.ErrClosed
			}
			delay = min(2*delay, acceptRetryMax)
			continue
		}
		delay = acceptRetryMin
		own := &conn{Conn: c, all: l.conns, closing: l.closed}
		l.conns.add(own)
		return own, nil
	}
}

// logFailure logs an error of Accept, at most once per acceptLogEvery.
func (l *listener) logFailure(err error) {
	l.failed++
	if time.Since(l.logged) < acceptLogEvery {
		return
	}
	l.log.Error("could not accept a connection; retrying", "err", err, "tries", l.failed)
	l.failed, l.logged = 0, time.Now()
}

// pause waits for d. It returns false if the listener is closed.
func (l *listener) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.closed:
		return false
	case <-timer.C:
		return true
	}
}

// Close stops accepting connections, and closes those on which no byte was
// received yet: the HTTP library would wait for them during a shutdown.
func (l *listener) Close() error { return l.closing() }

func (l *listener) close() error {
	close(l.closed)
	err := l.Listener.Close()
	for _, c := range l.conns.unused() {
		_ = c.Close()
	}
	return err
}
