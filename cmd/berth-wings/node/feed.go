package node

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/fasthttp/websocket"

	"berth/api/client"
	v1 "berth/api/v1"
)

// event is one message of a socket. Objects are JSON inside an argument.
type event struct {
	Name string   `json:"event"`
	Args []string `json:"args,omitempty"`

	needs string // the permission that a socket must have; empty: none
	line  bool   // of the console
	frame []byte // as sockets write it; nil: not prepared
}

// prepared returns an event that is encoded once for all sockets.
func (e event) prepared() event {
	text, _ := json.Marshal(e) // of this package: it cannot fail
	e.frame = frameOf(websocket.TextMessage, text)
	return e
}

// frameOf returns a whole message of a server as RFC 6455 has it. It is not compressed: a line is short.
func frameOf(kind int, content []byte) []byte {
	const final, two, eight = 0x80, 126, 127 // bytes of the length that follows
	frame := []byte{final | byte(kind)}
	switch size := len(content); {
	case size < two:
		frame = append(frame, byte(size))
	case size <= math.MaxUint16:
		frame = binary.BigEndian.AppendUint16(append(frame, two), uint16(size))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, eight), uint64(size))
	}
	return append(frame, content...)
}

// object returns an event whose argument is a value as JSON.
func object(name string, value any) event {
	text, _ := json.Marshal(value) // of this package: it cannot fail
	return event{Name: name, Args: []string{string(text)}}
}

// The bounds of a console.
const (
	maxLine    = 64 << 10 // bytes
	maxHistory = 1 << 20  // bytes
	maxSockets = 64       // of one server
)

// feed follows one container of berth while sockets listen to it, and gives each of them what happens.
type feed struct {
	mu      sync.Mutex
	sockets map[*socket]struct{}
	stop    context.CancelFunc // nil: it does not follow
	history []string           // the last lines, oldest first
	kept    int                // bytes of them
	loaded  bool               // history has what was printed before it followed
	partial string             // of the console, without its end yet
	install bool               // the container is being installed
}

// join adds a socket, and follows the container from the first one on. It refuses one too many.
func (n *Node) join(s *server, one *socket) bool {
	f := &s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sockets) >= maxSockets {
		return false
	}
	if f.sockets == nil {
		f.sockets = map[*socket]struct{}{}
	}
	f.sockets[one] = struct{}{}
	one.welcome()
	if f.stop == nil {
		ctx, cancel := context.WithCancel(n.ctx)
		f.stop, f.history, f.kept, f.loaded, f.partial = cancel, nil, 0, false, ""
		n.background(func(context.Context) { n.feed(ctx, s) })
	}
	return true
}

// leave removes a socket. The last one ends the feed.
func (s *server) leave(one *socket) {
	f := &s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sockets, one)
	if len(f.sockets) == 0 && f.stop != nil {
		f.stop()
		f.stop = nil
	}
}

// listeners returns the sockets of a server.
func (s *server) listeners() (list []*socket) {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	for one := range s.feed.sockets {
		list = append(list, one)
	}
	return list
}

// publish gives an event to all sockets of a server.
func (s *server) publish(e event) {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.feed.send(e)
}

func (f *feed) send(e event) {
	if len(f.sockets) == 0 {
		return
	}
	e = e.prepared()
	for one := range f.sockets {
		one.deliver(e)
	}
}

// feed follows the container of a server until its last socket leaves. While it has none, it waits for
// it.
func (n *Node) feed(ctx context.Context, s *server) {
	lines := n.config().System.WebsocketLogCount
	for ctx.Err() == nil {
		for m, err := range n.o.Berth.Containers().Follow(ctx, s.uuid, client.OpenOptions{Tail: lines}) {
			if err == nil && m.Event == client.EventLogs {
				var installed time.Time
				installed, err = n.installedAt(ctx, s)
				m = after(installed, m)
			}
			if err != nil {
				break
			}
			s.feed.take(ctx, s, m, lines)
		}
		pause(ctx, retryPause)
	}
}

// installedAt returns the time of the last line of the installer, or zero: berth has its lines in the console
// too, and they are for administrators alone. Whoever filters lines asks after he has them: the installer may have begun
// in between.
func (n *Node) installedAt(ctx context.Context, s *server) (time.Time, error) {
	logs, err := n.o.Berth.Containers().Logs(ctx, s.uuid, client.LogOptions{Tail: 1, Install: true})
	switch {
	case client.StatusOf(err) == http.StatusNotFound, err == nil && len(logs.Lines) == 0:
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, err
	}
	return logs.Lines[len(logs.Lines)-1].Time, nil
}

// after leaves the lines of a message that are later than a time.
func after(at time.Time, m client.Message) client.Message {
	lines := strings.SplitAfter(m.Data, "\n")
	first := slices.IndexFunc(m.Times, at.Before)
	if first < 0 || first >= len(lines) {
		m.Data, m.Times = "", nil
		return m
	}
	m.Data, m.Times = strings.Join(lines[first:], ""), m.Times[first:]
	return m
}

// take translates one message of berth.
func (f *feed) take(ctx context.Context, s *server, m client.Message, lines int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return // another feed has begun
	}
	switch m.Event {
	case client.EventLogs:
		f.load(m, lines)
	case client.EventConsole:
		f.print(m.Data, lines)
	case v1.EventState:
		f.enter(s, v1.Phase(m.Data))
	case client.EventStats:
		if stats, err := m.Stats(); err == nil {
			s.measure(stats)
			f.send(object("stats", s.current()))
		}
	}
}

// load takes the lines that were printed before the feed began, and gives them to the sockets that
// wait for them. Those that were printed since a socket joined are output to it.
func (f *feed) load(m client.Message, lines int) {
	first := !f.loaded
	f.loaded = true
	for line := range strings.Lines(m.Data) {
		f.keep(lineOf(line), lines)
		if len(m.Times) == 0 {
			continue
		}
		at := m.Times[0]
		m.Times = m.Times[1:]
		for one := range f.sockets {
			if first && !one.waits && at.After(one.since) {
				one.deliver(event{Name: "console output", Args: []string{lineOf(line)}, line: true})
			}
		}
	}
	for one := range f.sockets {
		if one.waits {
			one.waits = false
			one.sendHistory(f.history)
		}
	}
}

// keep adds a line to the history.
func (f *feed) keep(line string, lines int) {
	f.history = append(f.history, line)
	f.kept += len(line)
	over := 0
	for ; len(f.history)-over > lines || f.kept > maxHistory; over++ {
		f.kept -= len(f.history[over])
	}
	if over > 0 {
		f.history = append([]string{}, f.history[over:]...)
	}
}

// print gives each complete line to the sockets.
func (f *feed) print(text string, lines int) {
	f.loaded = true
	text = f.partial + text
	for {
		line, rest, complete := strings.Cut(text, "\n")
		if !complete && len(line) < maxLine {
			f.partial = line
			return
		}
		if len(line) > maxLine {
			line, rest = text[:maxLine], text[maxLine:]
		}
		text = rest
		line = strings.TrimSuffix(line, "\r")
		if !utf8.ValidString(line) {
			line = strings.ToValidUTF8(line, "\uFFFD")
		}
		if f.install {
			f.send(event{Name: "install output", Args: []string{line}, needs: "admin.websocket.install"})
			continue
		}
		f.keep(line, lines)
		f.send(event{Name: "console output", Args: []string{line}, line: true})
	}
}

// enter publishes what changes when the container enters a phase.
func (f *feed) enter(s *server, phase v1.Phase) {
	now := stateOf(phase)
	f.install = phase == v1.Installing
	for one := range f.sockets {
		if one.state == now {
			continue
		}
		one.state = now
		one.deliver(event{Name: "status", Args: []string{string(now)}})
		if now == offline {
			u := s.current()
			one.deliver(object("stats", usage{State: offline, MemoryLimit: u.MemoryLimit, Disk: u.Disk}))
		}
	}
}

// logsOf gives a socket the last lines, or has it wait until they are known.
func (s *server) logsOf(one *socket) {
	f := &s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case s.current().State == offline:
	case !f.loaded:
		one.waits = true
	default:
		one.sendHistory(f.history)
	}
}

// ended reports to the sockets of a server that it is gone, and closes them.
func (s *server) ended() {
	s.publish(event{Name: "deleted", Args: []string{"null"}})
	s.disconnect(func(*claims) bool { return true })
	s.endSFTP("")
}

// disconnect closes the sockets of a server whose tokens fulfil a condition. They have a moment to take
// what was sent before.
func (s *server) disconnect(which func(*claims) bool) {
	for _, one := range s.listeners() {
		if which(one.claims()) {
			time.AfterFunc(lastMoment, one.close)
		}
	}
}
