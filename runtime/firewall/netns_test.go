package firewall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	berthruntime "berth/runtime"
)

// space is a network namespace of a test: one thread that runs in it.
type space struct {
	tid  int
	work chan func()
}

// newSpace creates a namespace that is removed after the test.
func newSpace(t *testing.T) *space {
	t.Helper()
	s := &space{work: make(chan func())}
	ready, done := make(chan error), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
		s.tid = unix.Gettid()
		ready <- unix.Unshare(unix.CLONE_NEWNET)
		for f := range s.work {
			f()
		}
	}()
	t.Cleanup(func() { close(s.work); <-done })
	require.NoError(t, <-ready)
	s.sh(t, "ip link set lo up")
	return s
}

// do runs f in the namespace, with its sockets and commands.
func (s *space) do(f func() error) error {
	result := make(chan error)
	s.work <- func() { result <- f() }
	return <-result
}

// sh runs shell commands in the namespace.
func (s *space) sh(t *testing.T, script string) string {
	t.Helper()
	var out []byte
	err := s.do(func() (err error) {
		out, err = exec.Command("/bin/sh", "-e", "-c", script).CombinedOutput()
		return err
	})
	require.NoError(t, err, "%s: %s", script, out)
	return string(out)
}

// sync calls the backend's Sync in the namespace.
func (s *space) sync(b Backend, f berthruntime.Family, want []berthruntime.PortRule) (changed bool, err error) {
	err = s.do(func() (err error) {
		changed, err = b.Sync(context.Background(), f, want)
		return err
	})
	return changed, err
}

// pair is a host whose firewall drops everything, and a client of it.
func pair(t *testing.T) (host, client *space) {
	t.Helper()
	host, client = newSpace(t), newSpace(t)
	host.sh(t, fmt.Sprintf(`
		ip link add v0 type veth peer name v1
		ip link set v1 netns %d
		ip addr add 10.99.0.1/24 dev v0
		ip addr add 10.99.0.3/24 dev v0
		ip addr add fd99::1/64 dev v0 nodad
		ip link set v0 up`, client.tid))
	client.sh(t, `
		ip addr add 10.99.0.2/24 dev v1
		ip addr add fd99::2/64 dev v1 nodad
		ip link set v1 up`)
	host.sh(t, `
		iptables -P INPUT DROP
		ip6tables -P INPUT DROP
		ip6tables -A INPUT -p ipv6-icmp -j ACCEPT`)
	return host, client
}

// serve echoes on a port of the host, over both protocols, until the test ends.
func serve(t *testing.T, host *space, port string) {
	t.Helper()
	var tcp net.Listener
	var udp net.PacketConn
	err := host.do(func() (err error) {
		if tcp, err = net.Listen("tcp", ":"+port); err != nil {
			return err
		}
		udp, err = net.ListenPacket("udp", ":"+port)
		return err
	})
	require.NoError(t, err)
	done := make(chan struct{}, 2)
	t.Cleanup(func() { tcp.Close(); udp.Close(); <-done; <-done })
	go func() {
		for conn, err := tcp.Accept(); err == nil; conn, err = tcp.Accept() {
			conn.Close()
		}
		done <- struct{}{}
	}()
	go func() {
		b := make([]byte, 64)
		for n, from, err := udp.ReadFrom(b); err == nil; n, from, err = udp.ReadFrom(b) {
			udp.WriteTo(b[:n], from)
		}
		done <- struct{}{}
	}()
}

const patience = 300 * time.Millisecond

// reach reports whether a packet from client reaches address and its reply returns.
func reach(t *testing.T, client *space, network, address string) bool {
	t.Helper()
	err := client.do(func() error {
		conn, err := (&net.Dialer{Timeout: patience}).Dial(network, address)
		if err != nil || network == "tcp" {
			return errors.Join(err, closeOf(conn))
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("x")); err != nil {
			return err
		}
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 1))
		return err
	})
	var timeout net.Error
	rejected := errors.Is(err, unix.ECONNREFUSED)
	require.True(t, err == nil || rejected || errors.As(err, &timeout) && timeout.Timeout(), "%s %s: %v", network, address, err)
	return err == nil
}

// reaches is reach, again where a packet was lost: the link may have just come up, and the machine may be busy.
func reaches(t *testing.T, client *space, network, address string) bool {
	t.Helper()
	for range 20 {
		if reach(t, client, network, address) {
			return true
		}
	}
	return false
}

func closeOf(c io.Closer) error {
	if c == net.Conn(nil) || c == nil {
		return nil
	}
	return c.Close()
}

// berthLines returns the lines of iptables-save that belong to berth, in order.
func (s *space) berthLines(t *testing.T, tool string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(s.sh(t, tool+"-save -t filter")) {
		if strings.Contains(line, chainPrefix) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// block calls Egress.Block in the namespace.
func (s *space) block(e *Egress, f berthruntime.Family, b bridge) (changed bool, err error) {
	err = s.do(func() (err error) {
		changed, err = e.Block(context.Background(), f, b)
		return err
	})
	return changed, err
}

func itoa(n int) string { return strconv.Itoa(n) }

type bridge = berthruntime.Bridge
