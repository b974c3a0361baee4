package node_test

import (
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// rawSFTP is a session of SFTP whose packets the test makes.
type rawSFTP struct {
	t *testing.T
	ssh.Channel
}

// raw opens a session of a user of alpha with permissions.
func (w *world) raw(t *testing.T, permissions ...string) rawSFTP {
	t.Helper()
	w.panel.SetLogin("raw.a1a1a1a1", "secret", friend, alpha, permissions...)
	conn, err := ssh.Dial("tcp", w.sftp, &ssh.ClientConfig{User: "raw.a1a1a1a1", Auth: []ssh.AuthMethod{ssh.Password("secret")},
		HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	channel, requests, err := conn.OpenChannel("session", nil)
	require.NoError(t, err)
	go ssh.DiscardRequests(requests)
	ok, err := channel.SendRequest("subsystem", true, ssh.Marshal(struct{ Name string }{"sftp"}))
	require.NoError(t, err)
	require.True(t, ok)
	r := rawSFTP{t, channel}
	_, err = r.Write(packetOf(1, ssh.Marshal(struct{ Version uint32 }{3})))
	require.NoError(t, err)
	kind, _ := r.answer()
	require.Equal(t, byte(2), kind)
	return r
}

func packetOf(kind byte, body []byte) []byte {
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+1)), kind), body...)
}

// answer reads a packet. A kind of 0 is the end of the session.
func (r rawSFTP) answer() (kind byte, body []byte) {
	r.t.Helper()
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil
	}
	body = make([]byte, binary.BigEndian.Uint32(head)-1)
	_, err := io.ReadFull(r, body)
	require.NoError(r.t, err)
	return head[4], body
}

// TestHiddenChange: no use of the ids of requests keeps a change out of the activity. The second request is a change like
// any other if berth has answered the first one before it comes.
func TestHiddenChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	type named struct {
		ID   uint32
		Name string
	}
	reported := 0
	for _, first := range []struct {
		kind byte
		body []byte
	}{
		{17, ssh.Marshal(named{5, "/missing"})},
		{15, ssh.Marshal(named{5, "/missing"})},
		{14, ssh.Marshal(struct {
			named
			Attributes uint32
		}{named{5, "/game.txt"}, 0})},
	} {
		r := w.raw(t, "*")
		_, err := r.Write(append(packetOf(first.kind, first.body), packetOf(13, ssh.Marshal(named{5, "/game.txt"}))...))
		require.NoError(t, err)
		for kind, n := byte(1), 0; kind != 0 && n < 2; n++ { // a session that breaks the rules is ended
			kind, _ = r.answer()
		}
		if w.Do(t, "GET", atAlpha+"/files/contents?file=game.txt", nil).Status == 404 {
			reported++
			w.Want(t, 204, "POST", atAlpha+"/files/write?file=game.txt", "jar")
			w.panel.Await(t, "POST /activity", reported)
		}
	}
	require.Len(t, w.panel.Calls("POST /activity"), reported)
}

// TestOpenWithoutFlags: an id is free again after its answer, and a file is not read without the permission, whatever the flags are.
func TestOpenWithoutFlags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	r := w.raw(t, "file.read", "file.create", "file.update")
	for _, flags := range []uint32{0, 1, 32, 64, 1 << 31, 1 | 2, 1 | 2 | 8, 33} {
		_, err := r.Write(packetOf(3, ssh.Marshal(struct {
			ID                uint32
			Name              string
			Flags, Attributes uint32
		}{7, "/game.txt", flags, 0})))
		require.NoError(t, err)
		kind, body := r.answer()
		require.Equal(t, byte(101), kind, "flags %d", flags)
		require.Equal(t, uint32(3), binary.BigEndian.Uint32(body[4:]), "flags %d", flags)
	}
}
