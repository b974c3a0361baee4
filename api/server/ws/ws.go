package ws

import (
	"context"
	"log/slog"
	"sync"

	"github.com/gofiber/contrib/websocket"
	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"berth/api/auth"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

// Containers carries out the messages of clients. Errors meant for clients are
// v1.Errors.
type Containers interface {
	// Find returns v1.ErrContainerNotFound unless id is a container.
	Find(tx *store.Tx, id string) error
	// Power executes start, stop, kill or restart for a caller that may do so.
	Power(w store.Writer, caller auth.Principal, id, verb string) error
	Command(ctx context.Context, caller auth.Principal, id, command string) error
	Stats(ctx context.Context, id string) (v1.Stats, error)
	// Resize changes the size of a container's terminal.
	Resize(ctx context.Context, id string, columns, rows uint) error
}

// Deps are the dependencies of Sockets. All are required.
type Deps struct {
	Store      *store.Store
	Settings   auth.Settings
	Hub        *stream.Hub
	Sessions   *auth.Sessions
	Containers Containers
	Registerer prometheus.Registerer
	Log        *slog.Logger

	// Refusal returns the text that a client receives for an error. The caller logs
	// the error if log is true.
	Refusal func(err error) (text string, log bool)

	// Forget removes the record of a token that a socket has spent.
	Forget func(p auth.Principal)

	// Pace waits until a client may send another message that changes something.
	Pace func(ctx context.Context, p auth.Principal) error
	// Finish stores the outcome of such a message in the audit log. It returns err, or
	// why the outcome could not be stored.
	Finish func(r *store.Request, p auth.Principal, err error) error
}

// Sockets opens WebSockets.
type Sockets struct {
	Deps
	open    prometheus.Gauge
	reads   chan struct{} // has one socket at a time read earlier transitions
	buffers sync.Pool     // of write buffers; a socket holds one only while it writes
}

// New returns a Sockets.
func New(d Deps) *Sockets {
	s := &Sockets{Deps: d, reads: make(chan struct{}, 1), open: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "berth_websocket_connections",
		Help: "Open WebSocket connections.",
	})}
	d.Registerer.MustRegister(s.open)
	return s
}

// Request describes a socket.
type Request struct {
	Principal auth.Principal
	Actor     v1.Actor // of the client's messages
	Container v1.Meta  // zero: all containers of the node
	Tail      int      // console lines to send at first, unless Resume
	Resume    bool     // send the console lines behind Line
	Line      stream.Cursor
	Replay    bool // send the transitions after Since
	Since     uint64
	Epoch     string // of Since; empty: the client sent none
	ID        string // of the request, for the log
}

// IsUpgrade reports whether a request asks for a WebSocket.
func IsUpgrade(c *fiber.Ctx) bool { return websocket.IsWebSocketUpgrade(c) }

// Open upgrades a request, and serves the socket after the handler has returned.
// The caller has checked the origin.
func (s *Sockets) Open(c *fiber.Ctx, r Request) error {
	k := &socket{
		sockets: s, request: r, caller: r.Principal, container: r.Container.ID, since: r.Since,
		log:     s.Log.With(slog.String("request", r.ID)),
		answers: make(chan outgoing),
		ended:   make(chan struct{}),
	}
	return websocket.New(func(conn *websocket.Conn) { k.run(conn.Conn) }, websocket.Config{
		ReadBufferSize: 1024, WriteBufferSize: 4096, WriteBufferPool: &s.buffers,
	})(c)
}
