package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/config"
	"berth/cmd/berth-wings/panel"
)

// The bounds of SFTP. berth bounds what a session does.
const (
	sftpLoginTime   = time.Minute // the panel is asked meanwhile
	sftpDelay       = time.Second // of each login of an address that has failed often
	sftpTokenLife   = 24 * time.Hour
	maxSFTPTries    = 6
	maxSFTPChannels = 8 // of a connection

	maxSFTPSessions, maxServerSessions = 512, 32
)

// sftpUser matches the name of a user of the panel, with the first characters of a server's UUID.
var sftpUser = regexp.MustCompile(`\.[a-z0-9]{8}$`)

// sftpServer has what all connections share.
type sftpServer struct {
	anonymous *limit.Slots // connections that have not logged in
	sessions  *limit.Slots // by server
	wrong     *limit.Rate  // wrong logins, by address
}

func newSFTP() sftpServer {
	return sftpServer{limit.NewSlots(limit.SFTPAnonymous), limit.NewSlots(func() limit.Bounds {
		return limit.SFTPSessions(maxSFTPSessions, maxServerSessions)
	}), limit.NewRate(limit.WrongTokens())}
}

// login is one connection that is logged in.
type login struct {
	panel.Grant
	from  netip.Addr
	began time.Time // before the panel was asked
	end   func()    // closes the connection
}

// ServeSFTP serves the connections of a listener until ctx ends.
func (n *Node) ServeSFTP(ctx context.Context, listener net.Listener) error {
	key, err := hostKey(n.config().System)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // such as too many open files
			n.o.Log.Warn("a connection of SFTP is not accepted", "err", err)
			pause(ctx, time.Second)
			continue
		}
		from := addressOf(conn.RemoteAddr().String())
		known := n.sftp.anonymous.Push(limit.Claim{Tenant: limit.Network(from.String())}, func() { _ = conn.Close() })
		all.Go(func() {
			defer conn.Close()
			defer known()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			if err := n.serveSFTP(ctx, conn, key, known); err != nil {
				n.o.Log.Debug("a connection of SFTP ends", "address", from, "err", err)
			}
		})
	}
}

// hostKey returns the key of the node: the bridge's own, that of wings before it, or a new one.
func hostKey(c config.System) (ssh.Signer, error) {
	own := filepath.Join(c.RootDirectory, "berth-wings", "id_ed25519")
	for _, path := range []string{own, filepath.Join(c.Data, ".sftp", "id_ed25519")} {
		text, err := os.ReadFile(path)
		if err == nil {
			return ssh.ParsePrivateKey(text)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(key, "berth-wings")
	if err == nil {
		err = config.Replace(own, pem.EncodeToMemory(block))
	}
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(key)
}

// serveSFTP serves a connection, and calls known when it is logged in.
func (n *Node) serveSFTP(ctx context.Context, conn net.Conn, key ssh.Signer, known func()) error {
	if err := conn.SetDeadline(time.Now().Add(sftpLoginTime)); err != nil {
		return err
	}
	l := &login{from: addressOf(conn.RemoteAddr().String()), began: time.Now()}
	ask := func(meta ssh.ConnMetadata, kind, secret string) (*ssh.Permissions, error) {
		grant, err := n.askLogin(ctx, meta, kind, secret)
		return &ssh.Permissions{ExtraData: map[any]any{grantKey{}: grant}}, err
	}
	c := &ssh.ServerConfig{MaxAuthTries: maxSFTPTries, ServerVersion: v1.SFTPVersion,
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			return ask(meta, "public_key", string(ssh.MarshalAuthorizedKey(key)))
		}}
	if !n.config().System.SFTP.KeyOnly {
		c.PasswordCallback = func(meta ssh.ConnMetadata, secret []byte) (*ssh.Permissions, error) {
			return ask(meta, "password", string(secret))
		}
	}
	c.AddHostKey(key)
	client, channels, requests, err := ssh.NewServerConn(conn, c)
	if err != nil {
		return err
	}
	go ssh.DiscardRequests(requests) // it ends with the connection
	known()
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	l.Grant, _ = client.Permissions.ExtraData[grantKey{}].(panel.Grant) // of the key whose owner has logged in
	l.end = func() { _ = client.Close() }
	leave, err := n.sftp.sessions.Enter(ctx, limit.Claim{Tenant: l.Server})
	if err != nil {
		return err
	}
	defer leave()
	return n.serveLogin(ctx, l, channels)
}

type grantKey struct{}

var errLogin = errors.New("wrong user, password or key")

// askLogin asks the panel for a login. Addresses that have failed often wait for each answer.
func (n *Node) askLogin(ctx context.Context, meta ssh.ConnMetadata, kind, secret string) (g panel.Grant, err error) {
	from := addressOf(meta.RemoteAddr().String()).String()
	network := limit.Network(from)
	if n.sftp.wrong.Left(network, limit.WrongLogin) > 0 {
		pause(ctx, sftpDelay)
	}
	if !sftpUser.MatchString(meta.User()) {
		err = errLogin
	} else {
		g, err = n.o.Panel.Login(ctx, panel.Login{Type: kind, User: meta.User(), Password: secret, IP: meta.RemoteAddr().String(),
			Session: base64.StdEncoding.EncodeToString(meta.SessionID()), Client: base64.StdEncoding.EncodeToString(meta.ClientVersion())})
	}
	if err == nil {
		if s := n.find(g.Server); s == nil || s.closedToCustomers() {
			err = errLogin
		}
	}
	if err != nil {
		n.sftp.wrong.Take(network, limit.WrongLogin)
		n.o.Log.Info("sftp login failed", slog.String("address", from), slog.String("user", meta.User()[:min(len(meta.User()), 64)]))
		return panel.Grant{}, errLogin
	}
	return g, nil
}

// serveLogin serves the channels of a connection, with a token of berth that lives as long as it.
func (n *Node) serveLogin(ctx context.Context, l *login, channels <-chan ssh.NewChannel) error {
	s := n.find(l.Server)
	if s == nil {
		return errLogin
	}
	s.enterSFTP(l)
	defer s.leaveSFTP(l)
	if n.find(l.Server) != s || s.closedToCustomers() || n.tokens.deniedSince(userKey(l.User, l.Server), l.began) {
		return errLogin // meanwhile
	}
	berth, release, err := n.dialSFTP(ctx, s, l)
	if err != nil {
		n.o.Log.Warn("berth's SFTP cannot be used", "address", n.o.SFTP, "err", err)
		return err
	}
	defer release()
	var all, sessions sync.WaitGroup
	defer all.Wait()
	defer berth.Close()
	defer func() { // berth's answers to what the client has requested
		late := time.AfterFunc(writeTime, func() { _ = berth.Close() })
		defer late.Stop()
		sessions.Wait()
	}()
	all.Go(func() { // berth ends it
		_ = berth.Wait()
		l.end()
	})
	open := make(chan struct{}, maxSFTPChannels)
	for next := range channels {
		if next.ChannelType() != "session" {
			_ = next.Reject(ssh.Prohibited, "only the subsystem sftp is available")
			continue
		}
		select {
		case open <- struct{}{}:
		default:
			_ = next.Reject(ssh.ResourceShortage, "too many channels are open")
			continue
		}
		channel, requests, err := next.Accept()
		if err != nil {
			<-open
			continue
		}
		sessions.Go(func() {
			defer func() { <-open }()
			defer channel.Close()
			n.serveChannel(s, l, berth, sftpChannel{channel, requests})
		})
	}
	return nil
}

// sftpChannel is a channel of a client.
type sftpChannel struct {
	ssh.Channel
	requests <-chan *ssh.Request
}

// serveChannel waits for the request of the subsystem, and connects it with berth's.
func (n *Node) serveChannel(s *server, l *login, berth *ssh.Client, c sftpChannel) {
	for r := range c.requests {
		var subsystem struct{ Name string }
		if r.Type != "subsystem" || ssh.Unmarshal(r.Payload, &subsystem) != nil || subsystem.Name != "sftp" {
			_ = r.Reply(false, nil)
			if r.Type == "subsystem" || r.Type == "shell" || r.Type == "exec" {
				return
			}
			continue
		}
		to, requests, err := berth.OpenChannel("session", nil)
		if err != nil {
			_ = r.Reply(false, nil)
			return
		}
		defer to.Close()
		go ssh.DiscardRequests(requests) // both end with their channels
		go ssh.DiscardRequests(c.requests)
		ok, err := to.SendRequest("subsystem", true, r.Payload)
		_ = r.Reply(ok && err == nil, nil)
		if !ok || err != nil {
			return
		}
		f := &filter{client: c.Channel, berth: to, pending: map[uint32]*fileChange{}, may: n.mayOf(l),
			record: func(event string, file any) { n.recordFile(l, s, event, file) }}
		if err := f.run(); err != nil {
			n.o.Log.Debug("a channel of SFTP ends", "server", s.uuid, "err", err)
		}
		_, _ = c.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{}))
		return
	}
}

// mayOf returns which permissions a login has.
func (n *Node) mayOf(l *login) func(string) bool {
	return func(permission string) bool {
		if n.config().System.SFTP.ReadOnly && isWrite(permission) {
			return false
		}
		return slices.Contains(l.Permissions, permission) || slices.Contains(l.Permissions, "*")
	}
}

func isWrite(permission string) bool {
	return permission == mayCreate || permission == mayUpdate || permission == mayDelete
}

// recordFile records a change of a file for the panel.
func (n *Node) recordFile(l *login, s *server, event string, file any) {
	n.record(l.from, l.User, s, panel.Activity{Event: "server:sftp." + event, Metadata: map[string]any{"files": []any{file}}})
}

// dialSFTP connects with berth's SFTP, by a key and a token of the login alone: neither reveals anything to
// another program at berth's port.
func (n *Node) dialSFTP(ctx context.Context, s *server, l *login) (berth *ssh.Client, release func(), err error) {
	_, secret, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, nil, err
	}
	key, err := ssh.NewSignerFromKey(secret)
	if err != nil {
		return nil, nil, err
	}
	volume, err := n.volumeOf(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	may, scope, life := n.mayOf(l), v1.ScopeRead, sftpTokenLife.String()
	if may(mayCreate) || may(mayUpdate) || may(mayDelete) {
		scope = v1.ScopeFiles
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
	token, err := n.o.Berth.Tokens().Create(ctx, v1.TokenRequest{Name: "berth-wings", TTL: &life, Scopes: []v1.Scope{scope},
		Containers: []string{s.uuid}, OnBehalfOf: l.User, Address: l.from.String(), SSHKeys: []string{line}})
	if err != nil {
		return nil, nil, err
	}
	release = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
		defer cancel()
		if err := n.o.Berth.Tokens().Revoke(ctx, token.ID); err != nil { // it ends by itself
			n.o.Log.Warn("a token of SFTP is not revoked", "err", err)
		}
	}
	berth, err = n.connectSFTP(ctx, &ssh.ClientConfig{User: volume, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: n.berthKey})
	if err != nil {
		release()
	}
	return berth, release, err
}

// connectSFTP connects with berth's SFTP within a time.
func (n *Node) connectSFTP(ctx context.Context, config *ssh.ClientConfig) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", n.o.SFTP)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	c, channels, requests, err := ssh.NewClientConn(conn, n.o.SFTP, config)
	if err != nil {
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), nil
}

// berthKey refuses another host key of berth's than the first one.
func (n *Node) berthKey(_ string, _ net.Addr, key ssh.PublicKey) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sftpKey == nil {
		n.sftpKey = key.Marshal()
	}
	if !bytes.Equal(n.sftpKey, key.Marshal()) {
		return fmt.Errorf("berth's SFTP has another host key (%s) than before: restart berth-wings if that is meant", ssh.FingerprintSHA256(key))
	}
	return nil
}

// closedToCustomers reports whether nobody may log in at a server, whatever the panel has answered before.
func (s *server) closedToCustomers() bool { return s.suspended() || s.isInstalling() || s.moves() }

// enterSFTP adds a login.
func (s *server) enterSFTP(l *login) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins = append(s.logins, l)
}

func (s *server) leaveSFTP(l *login) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins = slices.DeleteFunc(s.logins, func(other *login) bool { return other == l })
}

// endSFTP ends the logins of a user, or those of all if user is empty.
func (s *server) endSFTP(user string) {
	s.mu.Lock()
	list := slices.Clone(s.logins)
	s.mu.Unlock()
	for _, l := range list {
		if user == "" || l.User == user {
			l.end()
		}
	}
}
