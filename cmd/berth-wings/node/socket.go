package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"berth/api/client"
	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/panel"
)

// The bounds of a socket.
const (
	maxMessage  = 4096     // bytes of a message of a browser
	maxText     = 32 << 10 // bytes of it when it is decompressed: a larger one is left out
	maxQueue    = 4 << 20  // bytes in the queue of a socket
	maxQueues   = 64 << 20 // bytes in the queues of all sockets; above it, sockets with long queues are closed
	writeTime   = 10 * time.Second
	openTime    = 30 * time.Second // for the first token
	checkEvery  = 30 * time.Second
	maxFrames   = 100 // that are read in a second
	renewBefore = time.Minute
	lastMoment  = time.Second

	closeSuspended = 4409
)

// socket is the socket of one browser.
type socket struct {
	n      *Node
	s      *server
	conn   *websocket.Conn
	from   netip.Addr
	limits map[string]*limiter
	pace   *rate.Limiter // of frames that are read: others wait in the browser
	joined bool          // by the reader alone
	leave  func()        // frees its slot

	mu     sync.Mutex
	token  *claims // nil: none yet
	queue  []event
	queued int           // bytes, in the queue and while they are written
	ended  bool          // nothing is queued any more
	wake   chan struct{} // has an element if there is something to write
	done   chan struct{} // closed at the end

	once sync.Once

	// Under the lock of the feed:
	waits   bool      // for the history
	since   time.Time // when it joined
	state   state     // that it was sent last
	printed int       // lines of the console that it was sent
	refused time.Time // when it was last sent why its token is not valid
}

// limiter bounds messages of one kind, and reports once that some are dropped.
type limiter struct {
	*rate.Limiter
	reported bool
}

// newLimits returns the limits of Pelican's node: of all messages, of some kinds, and of the others
// together.
func newLimits() map[string]*limiter {
	every := func(d time.Duration, burst int) *limiter {
		return &limiter{Limiter: rate.NewLimiter(rate.Every(d), burst)}
	}
	return map[string]*limiter{"global": every(200*time.Millisecond, 10), "auth": every(5*time.Second, 2),
		"send logs":    every(5*time.Second, 2),
		"send command": every(time.Second, 10), "": every(time.Second, 4)}
}

// webSocket is GET /api/servers/:s/ws. A browser names its panel as its origin.
func (n *Node) webSocket(c *call) error {
	origin, config := c.Header.Get("Origin"), n.config()
	known := append([]string{config.Remote}, config.AllowedOrigins...)
	if origin == "" || !slices.Contains(known, origin) && !slices.Contains(known, "*") {
		return refuse(http.StatusForbidden, "The origin of the request is not allowed.")
	}
	if len(c.server.listeners()) >= maxSockets {
		return refuse(400, "Too many open websocket connections.")
	}
	up := websocket.Upgrader{HandshakeTimeout: writeTime, EnableCompression: true, CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := up.Upgrade(c.w, c.Request, c.w.Header())
	if err != nil {
		return nil // it has answered
	}
	if c.server.suspended() {
		closing := websocket.FormatCloseMessage(closeSuspended, "server is suspended")
		_ = conn.WriteControl(websocket.CloseMessage, closing, time.Now().Add(writeTime)) // the browser may be gone
		return conn.Close()
	}
	s := &socket{n: n, s: c.server, conn: conn, from: n.address(c.Request), limits: newLimits(), pace: rate.NewLimiter(maxFrames, maxFrames),
		wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.leave = n.anonymous.Push(limit.Claim{Tenant: limit.Network(s.from.String())}, s.close)
	defer func() { s.leave() }() // it is another one once the socket has a token
	defer c.server.leave(s)
	defer s.close()
	s.paceControl()
	n.background(s.write)
	s.read()
	return nil
}

// paceControl has pings and pongs wait as messages do. The answer to a ping is queued: write alone writes.
func (s *socket) paceControl() {
	s.conn.SetPingHandler(func(text string) error {
		s.put(event{frame: frameOf(websocket.PongMessage, []byte(text))})
		return s.pace.Wait(s.n.ctx)
	})
	s.conn.SetPongHandler(func(string) error { return s.pace.Wait(s.n.ctx) })
}

// close ends a socket without a close frame, as nodes do.
func (s *socket) close() {
	s.once.Do(func() {
		close(s.done)
		_ = s.conn.Close()
	})
}

// claims returns the token of a socket, or nil.
func (s *socket) claims() *claims {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// valid returns why the token of a socket is not valid now.
func (s *socket) valid(now time.Time) error {
	token := s.claims()
	if token == nil {
		return errNotPresent
	}
	err := s.n.tokens.check(token, now)
	if err == nil && token.Server != s.s.uuid {
		err = errMismatch
	}
	return err
}

// deliver queues an event of the server for a socket that may receive it. If its token is not valid any
// more, it is sent the reason instead, once a second.
func (s *socket) deliver(e event) {
	now := time.Now()
	if err := s.valid(now); err != nil {
		if !errors.Is(err, errNotPresent) && now.Sub(s.refused) >= time.Second {
			s.refused = now
			s.put(event{Name: "jwt error", Args: []string{err.Error()}})
		}
		return
	}
	if e.needs != "" && !s.claims().has(e.needs) {
		return
	}
	if e.line {
		s.printed++
	}
	s.put(e)
}

// put queues an event. A browser that does not take what it is sent is disconnected: others must not
// wait for it, and a hole in the console would not be seen.
func (s *socket) put(e event) {
	if e.frame == nil {
		e = e.prepared()
	}
	size := 100 // its place in the queue: sockets share the text
	for _, arg := range e.Args {
		size += len(arg)
	}
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.queue = append(s.queue, e)
	s.queued += size
	all := s.n.queued.Add(int64(size))
	full := s.queued > maxQueue || all > maxQueues && s.queued > maxQueue/64
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	if full {
		s.close()
	}
}

// sendHistory queues the lines of a history that the socket was not sent when they were printed.
func (s *socket) sendHistory(lines []string) {
	for _, line := range lines[:max(0, len(lines)-s.printed)] {
		s.deliver(event{Name: "console output", Args: []string{line}})
	}
}

// write writes what is queued until the socket ends, many frames at once.
func (s *socket) write(ctx context.Context) {
	defer s.close()
	defer s.forget()
	conn := s.conn.NetConn()
	out := bufio.NewWriter(conn)
	for {
		s.mu.Lock()
		list, size := s.queue, s.queued
		s.queue = nil
		s.mu.Unlock()
		for _, e := range list {
			_ = conn.SetWriteDeadline(time.Now().Add(writeTime)) // the write returns the error
			_, _ = out.Write(e.frame)                            // as Flush does
		}
		if out.Flush() != nil {
			return
		}
		s.written(size)
		select {
		case <-s.wake:
		case <-s.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// written takes bytes out of what is queued.
func (s *socket) written(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued -= size
	s.n.queued.Add(-int64(size))
}

// forget takes out all that is left, for ever.
func (s *socket) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n.queued.Add(-int64(s.queued))
	s.queue, s.queued, s.ended = nil, 0, true
}

// watchTokens sends the sockets that the end of their tokens comes or has come, until ctx ends.
func (n *Node) watchTokens(ctx context.Context) {
	checks := n.o.Checks
	if checks == nil {
		ticker := time.NewTicker(checkEvery)
		defer ticker.Stop()
		checks = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-checks:
			for _, s := range n.all() {
				for _, one := range s.listeners() {
					one.renew(now)
				}
			}
		}
	}
}

// renew sends that the end of the token comes or has come.
func (s *socket) renew(now time.Time) {
	token := s.claims()
	switch left := token.ExpiresAt.Sub(now); { // check has refused one without an end
	case left <= 0:
		s.put(event{Name: "token expired"})
		s.put(event{Name: "jwt error", Args: []string{errExpired.Error()}})
	case left <= renewBefore:
		s.put(event{Name: "token expiring"})
	}
}

// read takes the messages of the browser until the socket ends.
func (s *socket) read() {
	s.conn.SetReadLimit(maxMessage)
	_ = s.conn.SetReadDeadline(time.Now().Add(openTime)) // the next read returns the error
	for {
		if s.pace.Wait(s.n.ctx) != nil {
			return
		}
		kind, from, err := s.conn.NextReader()
		if err != nil {
			return
		}
		text, err := io.ReadAll(io.LimitReader(from, maxText+1))
		if err != nil {
			return
		}
		var m struct {
			Event string    `json:"event"`
			Args  []*string `json:"args"`
		}
		if kind != websocket.TextMessage || len(text) > maxText || json.Unmarshal(text, &m) != nil || !s.allowed(m.Event) {
			continue
		}
		var argument strings.Builder // browsers split long ones, and send null for none
		for _, part := range m.Args {
			if part != nil {
				argument.WriteString(*part)
			}
		}
		s.take(m.Event, argument.String())
	}
}

// allowed reports whether a message is within the limits. The first that is not is reported.
func (s *socket) allowed(name string) bool {
	kind := name
	if s.limits[kind] == nil || kind == "global" {
		kind = ""
	}
	for _, l := range []struct{ key, name string }{{"global", "global"}, {kind, name}} {
		limit := s.limits[l.key]
		if limit.Allow() {
			limit.reported = false
			continue
		}
		if !limit.reported {
			limit.reported = true
			s.put(event{Name: "throttled", Args: []string{l.name}})
		}
		return false
	}
	return true
}

// take carries out one message.
func (s *socket) take(name, argument string) {
	if name == "auth" {
		s.authenticate(argument)
		return
	}
	if err := s.valid(time.Now()); err != nil {
		s.put(event{Name: "jwt error", Args: []string{err.Error()}})
		return
	}
	switch name {
	case "set state":
		s.setState(client.Action(argument))
	case "send command":
		s.command(argument)
	case "send logs":
		s.s.logsOf(s)
	case "send stats":
		s.put(object("stats", s.s.current()))
	}
}

const general = "an unexpected error was encountered while handling this request"

// fail sends an error of the node. Others than administrators see its text only if it is for users.
func (s *socket) fail(name, text string) {
	s.put(event{Name: name, Args: []string{"Error Event [" + uuid.NewString() + "]: " + text}})
}

// authenticate takes a token. One of another server is taken, and every message with it is refused.
func (s *socket) authenticate(text string) {
	token, err := s.n.parse(text)
	if err != nil {
		s.fail("daemon error", general)
		return
	}
	err = s.n.tokens.check(token, time.Now())
	if err == nil && (!token.has("websocket.connect") || !s.n.tokens.fits(token, scopeSocket)) {
		err = errNoConnect
	}
	if err != nil {
		s.fail("jwt error", err.Error())
		return
	}
	first := s.claims() == nil
	if first && !s.enter(token) {
		s.close()
		return
	}
	s.mu.Lock()
	s.token = token
	s.mu.Unlock()
	_ = s.conn.SetReadDeadline(time.Time{})
	s.put(event{Name: "auth success"})
	if s.valid(time.Now()) != nil || !first && s.joined {
		return
	}
	if s.joined = s.n.join(s.s, s); !s.joined {
		s.close()
	}
}

// enter gives a socket a slot of those that have shown a token, and reports whether there is one.
func (s *socket) enter(token *claims) bool {
	leave, err := s.n.browsers.Enter(s.n.ctx, limit.Claim{Tenant: limit.Network(s.from.String()), Object: token.Server})
	if err != nil {
		return false
	}
	s.leave()
	s.leave = leave
	return true
}

// welcome sends what a socket is sent first about its server. The feed is locked.
func (s *socket) welcome() {
	u := s.s.current()
	s.state, s.since = u.State, time.Now()
	s.put(event{Name: "status", Args: []string{string(u.State)}})
	if u.State == offline && !s.s.isInstalling() {
		s.put(object("stats", u))
	}
}

// permissionOf returns the permission that a power action needs.
func permissionOf(a client.Action) string {
	if a == client.Kill {
		a = client.Stop
	}
	return "control." + string(a)
}

// setState is a power action of a browser.
func (s *socket) setState(a client.Action) {
	token := s.claims()
	switch {
	case !isAction(a):
		s.daemonError(errors.New("the power action is not known"))
		return
	case !token.has(permissionOf(a)):
		return
	}
	s.n.record(s.from, token.User, s.s, panel.Activity{Event: "server:power." + string(a), Metadata: map[string]any{}})
	s.n.background(func(ctx context.Context) {
		soon, cancel := context.WithTimeout(ctx, writeTime) // berth may be away, and pages may ask again and again
		defer cancel()
		leave, err := s.n.orders.Enter(soon, limit.Claim{Tenant: s.s.uuid + " " + string(a)})
		if err != nil {
			s.daemonError(errBusy)
			return
		}
		defer leave()
		o, err := s.n.newOrder(soon, s.s, a)
		if err == nil {
			err = s.n.act(ctx, s.s, o, turnTime)
		}
		if err != nil && ctx.Err() == nil {
			s.daemonError(err)
		}
	})
}

// daemonError sends the error of an action.
func (s *socket) daemonError(err error) {
	token := s.claims()
	if token.has("admin.websocket.errors") || errors.Is(err, errBusy) {
		s.fail("daemon error", err.Error())
		return
	}
	s.fail("daemon error", general)
}

// command types a line into the console. The stop command is a stop, so that the server stays stopped.
func (s *socket) command(line string) {
	token := s.claims()
	if !token.has("control.console") || s.s.current().State == offline {
		return
	}
	// The entry is stored first, so that no command lacks one if the bridge is killed meanwhile.
	s.n.record(s.from, token.User, s.s, panel.Activity{Event: "server:console.command",
		Metadata: map[string]any{"command": strings.ToValidUTF8(line[:min(len(line), maxCommand)], "")}})
	ctx, cancel := context.WithTimeout(s.n.ctx, writeTime)
	defer cancel()
	t, err := s.n.tenant(ctx, s.s)
	if stop := s.s.get().StopCommand; err == nil && stop != "" && line == stop {
		_, err = t.Containers().Do(ctx, s.s.uuid, client.Stop)
	} else if err == nil {
		err = t.Containers().Send(ctx, s.s.uuid, line)
	}
	if err != nil && !errors.Is(err, v1.ErrNotRunning) {
		s.daemonError(err)
	}
}

// denyTokens is POST /api/servers/:s/ws/deny: tokens with a hash that were issued until now are refused.
func (n *Node) denyTokens(c *call) error {
	var r struct{ JTIs []string }
	if err := c.decode(&r); err != nil {
		return err
	}
	for _, id := range r.JTIs[:min(len(r.JTIs), maxNames)] {
		n.tokens.deny(id, time.Now())
	}
	return c.done(204, nil)
}

// deauthorize is POST /api/deauthorize-user: a user has lost his rights on servers, or on all. The
// panel wraps the body in another object.
func (n *Node) deauthorize(c *call) error {
	type body struct {
		User    string
		Servers []string
	}
	var r struct {
		body
		JSON *body `json:"json"`
	}
	if err := c.decode(&r); err != nil {
		return err
	}
	if r.JSON != nil {
		r.body = *r.JSON
	}
	if r.User == "" {
		return errInvalid
	}
	for _, s := range n.all() {
		if len(r.Servers) > 0 && !slices.Contains(r.Servers, s.uuid) {
			continue
		}
		n.tokens.deny(userKey(r.User, s.uuid), time.Now())
		s.disconnect(func(token *claims) bool { return token != nil && token.User == r.User })
		s.endSFTP(r.User)
	}
	return c.done(204, nil)
}
