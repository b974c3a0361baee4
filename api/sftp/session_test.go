package sftp

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// opened is a channel that a client opens, and whose requests a test sends.
type opened struct {
	ssh.Channel
	requests chan *ssh.Request
	refused  ssh.RejectionReason
}

func newOpened() *opened { return &opened{requests: make(chan *ssh.Request)} }

func (o *opened) ChannelType() string { return "session" }
func (o *opened) ExtraData() []byte   { return nil }
func (o *opened) Close() error        { return nil }

func (o *opened) Accept() (ssh.Channel, <-chan *ssh.Request, error) { return o, o.requests, nil }

func (o *opened) Reject(reason ssh.RejectionReason, _ string) error {
	o.refused = reason
	return nil
}

// TestOneChannelUntilClosed requires that a channel counts until its client has closed
// it: what the client sends before stays in memory.
func TestOneChannelUntilClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s session
		var all sync.WaitGroup
		first, second, third := newOpened(), newOpened(), newOpened()
		s.accept(first, &all)
		first.requests <- &ssh.Request{Type: "shell"} // ends the channel from our side
		synctest.Wait()
		s.accept(second, &all)
		require.Equal(t, ssh.ResourceShortage, second.refused)
		close(first.requests) // the client has closed it
		synctest.Wait()
		s.accept(third, &all)
		require.Zero(t, third.refused)
		close(third.requests)
		all.Wait()
	})
}
