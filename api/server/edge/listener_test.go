package edge

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// failing is a listener whose Accept returns some errors, then connections.
type failing struct {
	net.Listener
	errs []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.errs) == 0 {
		return fromAddress("127.0.0.1"), nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: err}
}

func (f *failing) Close() error { return nil }

// TestAcceptRetries: Accept retries after every error, and logs few of them.
func TestAcceptRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kinds := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, os.NewSyscallError("accept4", syscall.EINVAL), errors.New("new")}
		ln := &failing{}
		for range 20 {
			ln.errs = append(ln.errs, kinds...)
		}
		log := &lines{}
		l := newListener(ln, newConnections(noProxy), slog.New(slog.NewTextHandler(log, nil)))
		c, err := l.Accept()
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.Contains(t, log.String(), "too many open files")
		require.Equal(t, 6, strings.Count(log.String(), "\n"), "120 tries in a minute")

		ln.errs = []error{net.ErrClosed}
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)

		ln.errs = kinds
		go func() { _ = l.Close() }()
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed, "it does not wait for its next try")
	})
}
