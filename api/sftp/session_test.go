package sftp

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	client "github.com/pkg/sftp"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/auth"
	"berth/api/limit"
	v1 "berth/api/v1"
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

func (o *opened) Stderr() io.ReadWriter { return new(bytes.Buffer) }

func (o *opened) Accept() (ssh.Channel, <-chan *ssh.Request, error) { return o, o.requests, nil }

func (o *opened) Reject(reason ssh.RejectionReason, _ string) error {
	o.refused = reason
	return nil
}

// TestChannelCountsUntilClosed requires that a channel counts until its client has closed
// it: what the client sends before stays in memory.
func TestChannelCountsUntilClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session{server: &Server{limits: limits{sessions: limit.NewSlots(func() limit.Bounds { return limit.Bounds{All: 1, Tenant: 1} })}}, meter: &meter{}, ctx: t.Context()}
		var all sync.WaitGroup
		first, second, third, fourth := newOpened(), newOpened(), newOpened(), newOpened()
		s.accept(first, &all)
		s.accept(second, &all)
		second.requests <- &ssh.Request{Type: "shell"} // ends the channel from our side
		synctest.Wait()
		s.accept(third, &all)
		require.Equal(t, ssh.ResourceShortage, third.refused)
		close(second.requests) // the client has closed it
		synctest.Wait()
		s.accept(fourth, &all)
		require.Zero(t, fourth.refused)
		close(fourth.requests)
		close(first.requests)
		all.Wait()
		require.Zero(t, s.meter.channels)
	})
}

// TestChannelsOfAConnection opens several channels as OpenSSH's ControlMaster does: all but the first
// count as sessions.
func TestChannelsOfAConnection(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) { c.SFTP.MaxSessionsPerToken = 10 })
	token := h.mint(auth.Grant{})
	conn, err := h.dial(h.volume, ssh.Password(token))
	require.NoError(t, err)
	open := func() error {
		c, err := client.NewClient(conn)
		if err != nil {
			return err
		}
		f, err := c.Create("file")
		require.NoError(t, err)
		_, err = f.Write([]byte("text"))
		require.NoError(t, err)
		return f.Close()
	}
	for range maxChannels {
		require.NoError(t, open())
	}
	require.ErrorContains(t, open(), "too many SFTP sessions are open")
	require.Equal(t, maxChannels, h.server.limits.sessions.Used())
	for range 2 {
		_, err = h.dial(h.volume, ssh.Password(token))
		require.NoError(t, err)
	}
	_, err = h.dial(h.volume, ssh.Password(token))
	require.Error(t, err)
	require.NoError(t, conn.Close())
	h.eventually("the places are free", func() bool { return h.server.limits.sessions.Used() == 2 })
}
