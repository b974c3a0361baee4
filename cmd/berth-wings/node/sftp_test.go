package node_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/hack/test/berthtest"
	"berth/hack/test/paneltest"
)

const friend = "0f0f0f0f-0000-4000-8000-0f0f0f0f0f0f"

// dialSFTP logs a user in.
func (w *world) dialSFTP(user string, auth ssh.AuthMethod) (*sftp.Client, error) {
	conn, err := ssh.Dial("tcp", w.sftp, &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{auth}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	if err != nil {
		return nil, err
	}
	return sftp.NewClient(conn)
}

// login opens an SFTP session of a user of alpha with permissions.
func (w *world) login(t *testing.T, uuid string, permissions ...string) *sftp.Client {
	t.Helper()
	w.panel.SetLogin("user.a1a1a1a1", "secret", uuid, alpha, permissions...)
	c, err := w.dialSFTP("user.a1a1a1a1", ssh.Password("secret"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// put writes a file as OpenSSH's client does.
func put(c *sftp.Client, name, content string) error {
	f, err := c.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(content))
	_ = f.Close()
	return err
}

func get(c *sftp.Client, name string) (string, error) {
	f, err := c.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

// TestSFTP is the day of an owner and of users with fewer permissions.
func TestSFTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	w.panel.Fail(func(c paneltest.Call) int { return map[bool]int{true: 503}[c.Path == "/activity"] }) // until all is done, however long it takes
	owner := w.login(t, paneltest.User, "*")
	require.NoError(t, put(owner, "/new.txt", "one"))
	require.NoError(t, put(owner, "/new.txt", "two"))
	text, err := get(owner, "/new.txt")
	require.NoError(t, err)
	require.Equal(t, "two", text)
	require.NoError(t, owner.Mkdir("/made"))
	require.NoError(t, owner.PosixRename("/new.txt", "/made/moved.txt"))
	require.NoError(t, owner.Rename("/made/moved.txt", "/made/again.txt"))
	require.NoError(t, owner.Chmod("/made/again.txt", 0o600))
	require.Error(t, put(owner, "/secret.txt", "x"), "the egg's list")
	require.Error(t, owner.Mkdir("/game.txt"), "it is a file")
	require.NoError(t, owner.Remove("/made/again.txt"))
	require.NoError(t, owner.RemoveDirectory("/made"))
	for n := range 30 {
		require.NoError(t, put(owner, fmt.Sprint("/many", n), "x"))
	}

	reader := w.login(t, friend, "file.sftp", "file.read", "file.read-content")
	_, err = get(reader, "/game.txt")
	require.NoError(t, err)
	denied := func(err error) { t.Helper(); require.ErrorIs(t, err, os.ErrPermission) }
	for _, name := range []string{"/game.txt", "/other.txt"} {
		denied(put(reader, name, "x"))
		denied(reader.Remove(name))
		denied(reader.Mkdir(name))
		denied(reader.Rename(name, "/renamed"))
		denied(reader.PosixRename(name, "/renamed"))
		denied(reader.Chmod(name, 0o600))
		denied(reader.Symlink(name, "/link"))
		denied(reader.Link(name, "/link"))
		denied(reader.Truncate(name, 0))
	}
	creator := w.login(t, friend, "file.create")
	require.NoError(t, put(creator, "/created.txt", "x"))
	require.Error(t, put(creator, "/game.txt", "x"))
	_, err = get(creator, "/game.txt")
	denied(err)
	_, err = creator.ReadDir("/")
	denied(err)
	updater := w.login(t, friend, "file.update", "file.read")
	require.NoError(t, put(updater, "/created.txt", "y"))
	require.Error(t, put(updater, "/other.txt", "x"))
	list, err := updater.ReadDir("/")
	require.NoError(t, err)
	require.Len(t, list, 33)
	w.files(t, map[string]string{"created.txt": "y", "other.txt": "", "game.txt": "game of hello\n"})

	want := map[string]int{"server:sftp.create": 32, "server:sftp.write": 2, "server:sftp.create-directory": 1, "server:sftp.rename": 2, "server:sftp.delete": 2}
	got, entries := map[string]int{}, 0
	w.panel.Fail(nil)
	berthtest.Until(t, 3*time.Minute, "the panel has the last entry", func() bool {
		got, entries = map[string]int{}, 0
		for _, c := range w.panel.Calls("POST /activity") {
			var sent struct {
				Data []struct {
					Event, IP, User string
					Metadata        struct{ Files []any }
				}
			}
			require.NoError(t, json.Unmarshal([]byte(c.Body), &sent))
			for _, e := range sent.Data {
				require.Equal(t, "127.0.0.1", e.IP)
				if c.Status == 200 {
					got[e.Event] += len(e.Metadata.Files)
					entries++
				}
			}
		}
		return got["server:sftp.write"] == 2
	})
	require.Equal(t, want, got)
	require.Less(t, entries, 20, "the files of a minute are one entry")
}

// TestLoginsOfSFTP: who may log in, and how logins end.
func TestLoginsOfSFTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	_, err := w.dialSFTP("user.a1a1a1a1", ssh.Password("wrong"))
	require.Error(t, err)
	asked := len(w.panel.Calls("POST /sftp/auth"))
	require.Equal(t, 1, asked)
	_, err = w.dialSFTP("user", ssh.Password("secret"))
	require.Error(t, err)
	require.Len(t, w.panel.Calls("POST /sftp/auth"), asked, "that is no user of the panel")
	_, secret, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	key, err := ssh.NewSignerFromKey(secret)
	require.NoError(t, err)
	_, err = w.dialSFTP("user.a1a1a1a1", ssh.PublicKeys(key))
	require.Error(t, err)
	w.panel.SetLogin("user.a1a1a1a1", string(ssh.MarshalAuthorizedKey(key.PublicKey())), paneltest.User, alpha, "*")
	c, err := w.dialSFTP("user.a1a1a1a1", ssh.PublicKeys(key))
	require.NoError(t, err)
	defer c.Close()

	ended := func(c *sftp.Client) { // before the panel has the answer
		t.Helper()
		_, err := c.Stat("/game.txt")
		require.Error(t, err)
	}
	other := w.login(t, friend, "*")
	w.Want(t, 204, "POST", "/api/deauthorize-user", map[string]any{"user": paneltest.User, "servers": []string{alpha}})
	ended(c)
	_, err = other.Stat("/game.txt")
	require.NoError(t, err)
	w.panel.SetServer(t, w.server(`"suspended": true, `))
	w.Want(t, 204, "POST", atAlpha+"/sync", nil)
	ended(other)
	_, err = w.dialSFTP("user.a1a1a1a1", ssh.Password("secret"))
	require.Error(t, err, "it is suspended")
	berthtest.Until(t, 3*time.Minute, "the tokens of the logins are revoked", func() bool {
		list, err := w.berth.API.Tokens().List(t.Context())
		require.NoError(t, err)
		for _, token := range list {
			if len(token.SSHKeys) > 0 {
				return false
			}
		}
		return true
	})
	first := w.hostKey(t)
	w.stop()
	w.run(t)
	require.Equal(t, first, w.hostKey(t))
}

// hostKey returns the key of the node.
func (w *world) hostKey(t *testing.T) (key string) {
	t.Helper()
	_, err := ssh.Dial("tcp", w.sftp, &ssh.ClientConfig{User: "x", HostKeyCallback: func(_ string, _ net.Addr, k ssh.PublicKey) error {
		key = string(k.Marshal())
		return nil
	}})
	require.Error(t, err)
	return key
}

// TestSilentSFTP: a berth whose SFTP does not speak keeps neither a login nor the bridge from its end.
func TestSilentSFTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	next := func() net.Conn {
		t.Helper()
		select {
		case conn := <-accepted:
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		case <-time.After(3 * time.Minute):
			require.Fail(t, "the bridge does not connect")
			return nil
		}
	}
	t.Cleanup(func() { _ = silent.Close() })
	w.stop()
	w.berthSFTP = silent.Addr().String()
	w.run(t)
	w.panel.SetLogin("user.a1a1a1a1", "secret", friend, alpha, "*")
	failed := make(chan error, 1)
	login := func() {
		go func() {
			_, err := w.dialSFTP("user.a1a1a1a1", ssh.Password("secret"))
			failed <- err
		}()
		conn := next()
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}()
	}
	ended := func(what string) {
		t.Helper()
		select {
		case err := <-failed:
			require.Error(t, err)
		case <-time.After(3 * time.Minute):
			require.Fail(t, what)
		}
	}
	login()
	ended("the login waits for ever")
	login()
	go func() {
		w.stop()
		w.stop = func() {}
		failed <- io.EOF
	}()
	ended("the login waits for the bridge")
	ended("the bridge waits for berth")
}
