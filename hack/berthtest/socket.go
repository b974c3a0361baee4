package berthtest

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// Message is one message of a socket.
type Message struct {
	Event, Data, Container string
	Time                   time.Time
	Seq                    uint64
	Read                   time.Time `json:"-"` // when the test got it
	Raw                    string    `json:"-"`
}

// Socket is a WebSocket that keeps what it hears.
type Socket struct {
	conn *websocket.Conn

	mu     sync.Mutex
	all    []Message
	change chan struct{} // closed at the next message
	ended  chan struct{} // closed when nothing is read any more
	code   int           // that the daemon closed it with; 0: it was cut; known at the end
}

// Listen opens a socket, such as "/ws" or "/ws/mc?tail=0". It is closed at the test's end.
func (b *Berth) Listen(t testing.TB, path string) *Socket {
	t.Helper()
	s, response, err := b.Dial(path, http.Header{"Authorization": {"Bearer " + b.Token}})
	if err != nil {
		status := 0
		if response != nil {
			status = response.StatusCode
		}
		t.Fatalf("socket %s: %v (status %d)", path, err, status)
	}
	t.Cleanup(s.Close)
	return s
}

// Dial opens a socket with these headers, or returns why not.
func (b *Berth) Dial(path string, header http.Header) (*Socket, *http.Response, error) {
	conn, response, err := websocket.DefaultDialer.Dial("ws://"+b.Addr+path, header)
	if err != nil {
		return nil, response, err
	}
	s := &Socket{conn: conn, change: make(chan struct{}), ended: make(chan struct{})}
	go s.read()
	return s, response, nil
}

func (s *Socket) read() {
	defer close(s.ended)
	for {
		_, raw, err := s.conn.ReadMessage()
		if err != nil {
			var closed *websocket.CloseError
			if errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure {
				s.code = closed.Code
			}
			return
		}
		m := Message{Read: time.Now(), Raw: string(raw)}
		if err := json.Unmarshal(raw, &m); err != nil {
			m.Event = "no JSON: " + err.Error()
		}
		s.mu.Lock()
		s.all = append(s.all, m)
		close(s.change)
		s.change = make(chan struct{})
		s.mu.Unlock()
	}
}

// Close ends the socket, and waits until nothing is read any more.
func (s *Socket) Close() {
	_ = s.conn.Close()
	<-s.ended
}

// Send sends one message.
func (s *Socket) Send(t testing.TB, text string) {
	t.Helper()
	if err := s.conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Fatalf("socket: %v", err)
	}
}

// Messages are all that came so far.
func (s *Socket) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Await waits until the messages so far fulfil a condition.
func (s *Socket) Await(t testing.TB, what string, done func([]Message) bool) {
	t.Helper()
	late := time.NewTimer(90 * time.Second)
	defer late.Stop()
	for {
		s.mu.Lock()
		all, change := s.all, s.change
		s.mu.Unlock()
		if done(all) {
			return
		}
		select {
		case <-change:
		case <-s.ended:
			if !done(s.Messages()) {
				t.Fatalf("socket: it ended before: %s", what)
			}
			return
		case <-late.C:
			t.Fatalf("socket: waited in vain: %s; heard\n%s", what, tail(s.text()))
		}
	}
}

// Next waits for the first message from index from on that is as wanted, and
// returns it with the index after it.
func (s *Socket) Next(t testing.TB, from int, what string, want func(Message) bool) (m Message, next int) {
	t.Helper()
	s.Await(t, what, func(all []Message) bool {
		at := slices.IndexFunc(all[min(from, len(all)):], want)
		if at >= 0 {
			m, next = all[from+at], from+at+1
		}
		return at >= 0
	})
	return m, next
}

// Event waits for a state event of a container from index from on.
func (s *Socket) Event(t testing.TB, from int, container, state string) (Message, int) {
	t.Helper()
	return s.Next(t, from, container+" "+state, func(m Message) bool {
		return m.Event == "event" && m.Data == state && (m.Container == container || m.Container == "")
	})
}

// States are the state events of a container so far, in order.
func (s *Socket) States(container string) (states []string) {
	for _, m := range s.Messages() {
		if m.Event == "event" && m.Container == container {
			states = append(states, m.Data)
		}
	}
	return states
}

// Ended waits until the daemon has closed the socket, and returns the code; 0
// if the connection just broke.
func (s *Socket) Ended(t testing.TB) (code int) {
	t.Helper()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	select {
	case <-s.ended:
	case <-late.C:
		t.Fatal("the socket stays open")
	}
	return s.code
}

func (s *Socket) text() string {
	var b strings.Builder
	for _, m := range s.Messages() {
		if m.Event != "stats" {
			b.WriteString(m.Raw + "\n")
		}
	}
	return b.String()
}
