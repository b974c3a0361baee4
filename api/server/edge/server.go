package edge

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"berth/api/limit"
	v1 "berth/api/v1"
)

// Time limits for clients.
const (
	headerTimeout = 10 * time.Second // to the first byte of a request, then to the end of its headers
	idleTimeout   = 2 * time.Minute  // between two requests
	writeTimeout  = 30 * time.Second // to receive one chunk of an answer
)

// headerLimit bounds the request line and headers, in bytes. A file path of 4 KiB
// takes 12 KiB in a URL if each byte of it is percent-encoded.
const headerLimit = 16 << 10

// Options configure a Server. All are required.
type Options struct {
	Settings    func() v1.Config
	Registerer  prometheus.Registerer
	Log         *slog.Logger
	WrongTokens *limit.Rate // counts the wrong tokens of each address
}

// Server serves HTTP.
type Server struct {
	options Options
	log     *slog.Logger
	app     *fiber.App
	answers *limit.Slots // the memory of large answers, in MiB

	duration     *prometheus.HistogramVec
	failures     prometheus.Counter
	failureLines *limit.Rate // of the log, by address
	requestLines *limit.Rate // of the log

	mu       sync.Mutex
	shut     bool // Close was called
	listener *listener
}

// New returns a Server without routes, which does nothing until Listen is called.
func New(o Options) *Server {
	s := &Server{options: o, log: o.Log, answers: limit.NewSlots(limit.Answers),
		duration: newDuration(), failures: newFailures(),
		failureLines: limit.NewRate(limit.FailureLines()), requestLines: limit.NewRate(limit.RequestLines())}
	o.Registerer.MustRegister(s.duration, s.failures)
	s.app = fiber.New(fiber.Config{
		Immutable:                    true, // otherwise later requests overwrite the memory of stored strings
		CaseSensitive:                true,
		UnescapePath:                 true, // so that /%63ontainers is /containers
		StreamRequestBody:            true, // Bodies and Upload bound the bodies
		DisablePreParseMultipartForm: true,
		BodyLimit:                    math.MaxInt,
		ReadBufferSize:               headerLimit,
		ReadTimeout:                  headerTimeout,
		IdleTimeout:                  idleTimeout,
		DisableStartupMessage:        true,
		ErrorHandler:                 s.Fail,
	})
	s.app.Server().CloseOnShutdown = true
	s.app.Server().Handler = normalized(s.app.Server().Handler)
	s.app.Use(s.observe, s.checkRequest)
	return s
}

// encodedSlash matches a percent-encoded slash.
var encodedSlash = regexp.MustCompile(`%(2[Ff])`)

// normalized gives a request with an unknown method one that no route has: fiber would answer it
// before any check. An encoded slash stays encoded, so that no segment becomes two.
func normalized(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if !slices.Contains(fiber.DefaultMethods, string(ctx.Method())) {
			ctx.Request.Header.SetMethod(fiber.MethodTrace)
		}
		if path := ctx.URI().PathOriginal(); bytes.Contains(path, []byte("%2")) {
			ctx.URI().SetPathBytes(encodedSlash.ReplaceAll(path, []byte("%25${1}")))
		}
		next(ctx)
	}
}

// Add adds a route.
func (s *Server) Add(method, path string, h fiber.Handler) { s.app.Add(method, path, h) }

// AddLast adds the handler of the requests that no route matches; routes must not
// be added after it. It may call Next, which returns the error of status 404 or 405.
func (s *Server) AddLast(h fiber.Handler) { s.app.Use(h) }

// Routes returns the added routes.
func (s *Server) Routes() []fiber.Route { return s.app.GetRoutes(true) }

// checkRequest refuses a request that proxies read in different ways, and one that
// a web page of another site may have caused. It answers preflights.
func (s *Server) checkRequest(c *fiber.Ctx) error {
	if folded(c.Request().Header.RawHeaders()) {
		return errFolded
	}
	config := s.options.Settings()
	if err := s.checkOrigin(c, config.Server); err != nil {
		return err
	}
	if err := checkPage(c, config); err != nil {
		return err
	}
	if isPreflight(c) {
		return answerPreflight(c)
	}
	return c.Next()
}

// Listen serves the connections of ln until Shutdown, and closes ln.
func (s *Server) Listen(ln net.Listener) error {
	own := newListener(ln, newConnections(s.trusted), s.log)
	if !s.takeListener(own) {
		return own.Close()
	}
	err := s.app.Listener(own)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// takeListener stores the listener for Close. It returns false if Close was called
// already.
func (s *Server) takeListener(own *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = own
	return !s.shut
}

// Close closes the listener, ends the contexts of the requests in flight (see
// Context), and makes a later Listen return at once. The HTTP library alone would
// miss a shutdown that comes just before Listen.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = true
	if s.listener != nil {
		_ = s.listener.Close() // Listen returns the error
	}
}

// Shutdown waits until the requests in flight are answered or ctx ends. The caller
// must have called Close.
func (s *Server) Shutdown(ctx context.Context) error { return s.app.ShutdownWithContext(ctx) }
