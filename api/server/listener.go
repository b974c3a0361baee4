package server

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// The time between two tries to accept a connection, when the first has failed.
const (
	acceptRetryMin = 5 * time.Millisecond
	acceptRetryMax = 500 * time.Millisecond
)

// acceptLogEvery spaces the log lines about connections that could not be accepted.
const acceptLogEvery = 10 * time.Second

// listener accepts connections until it is closed. No error ends it: those of a
// process or host without free handles or memory (EMFILE, ENFILE, ENOBUFS,
// ENOMEM) pass, and of others nobody knows that they do not.
type listener struct {
	net.Listener
	conns   *connections
	log     *slog.Logger
	closed  chan struct{}
	closing func() error // close, once

	failed int       // tries since the last log line
	logged time.Time // when that was
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
		own := &conn{Conn: c, all: l.conns}
		if l.conns.add(own) {
			return own, nil
		}
	}
}

// logFailure logs an error of Accept, unless it has logged one just now.
func (l *listener) logFailure(err error) {
	l.failed++
	if time.Since(l.logged) < acceptLogEvery {
		return
	}
	l.log.Error("could not accept a connection; trying again", "err", err, "tries", l.failed)
	l.failed, l.logged = 0, time.Now()
}

// pause waits. It returns false if the listener is closed.
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

// Close takes no more connections, and closes those on which nothing has come
// yet: the library would wait for them when it shuts down.
func (l *listener) Close() error { return l.closing() }

func (l *listener) close() error {
	close(l.closed)
	err := l.Listener.Close()
	for _, c := range l.conns.unused() {
		_ = c.Close()
	}
	return err
}
