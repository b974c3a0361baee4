package node

import (
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"berth/api/client"
	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/config"
	"berth/cmd/berth-wings/panel"
)

// maxBody bounds the JSON body of a request, in bytes.
const maxBody = 1 << 20

// call is one request.
type call struct {
	w http.ResponseWriter
	*http.Request
	id     string  // of the request
	server *server // of the path; nil: the path has none

	revoked func() bool // reports whether the client has lost the access meanwhile; nil: it keeps it
}

// checkAccess returns an error if the client has lost the access meanwhile.
func (c *call) checkAccess() error {
	if c.revoked != nil && c.revoked() {
		return errNoToken
	}
	return nil
}

// refusal is an error with the status and the sentence of a node. The panel shows the sentence to its
// user.
type refusal struct {
	status int
	text   string
	named  bool // the answer names the request
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...), false}
}

// The sentences that panels and their users know.
var (
	errUnexpected = &refusal{500, "An unexpected error was encountered while processing this request", true}
	errBadJSON    = &refusal{400, errUnexpected.text, true}
	errNoBody     = refuse(400, "The data passed in the request was not in a parsable format. Please try again.")
	errInvalid    = refuse(422, "The data provided in the request could not be validated.")
	errNoHeader   = refuse(401, "The required authorization heads were not present in the request.")
	errForbidden  = refuse(403, "You are not authorized to access this endpoint.")
	errNoServer   = refuse(404, "The requested resource does not exist on this instance.")
	errNotFound   = &refusal{404, "The requested resources was not found on the system.", true}
	errDirectory  = &refusal{400, "Cannot perform that action: file is a directory.", true}
	errDenied     = &refusal{403, "This file cannot be modified: present in egg denylist.", true}
	errNoSpace    = &refusal{400, "There is not enough disk space available to perform that action.", true}
)

// refusals are the answers to errors of berth. Others are answered with berth's own sentence if the
// request is at fault, and else with the general one.
func refusals() map[v1.Code]*refusal {
	return map[v1.Code]*refusal{v1.PathNotFound: errNotFound, v1.InvalidPath: errNotFound,
		v1.VolumeNotFound: errNotFound, v1.BackupNotFound: errNoBackup,
		v1.FileDenied: errDenied, v1.SizeLimit: errNoSpace, v1.DiskFull: errNoSpace}
}

// has reports whether an error of berth has one of the codes.
func has(err error, codes ...v1.Code) bool {
	var refused *client.Error
	return errors.As(err, &refused) && slices.Contains(codes, refused.Code)
}

// answerError answers with an error.
func (n *Node) answerError(c *call, err error) {
	var r *refusal
	var refused *client.Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &r):
	case errors.As(err, &refused) && refusals()[refused.Code] != nil:
		r = refusals()[refused.Code]
	case errors.As(err, &refused) && (refused.Status/100 == 4 || refused.Status == http.StatusInsufficientStorage):
		r = &refusal{400, refused.Message, true}
	case errors.As(err, &large):
		r = &refusal{413, "The data passed in the request is too large.", true}
	default:
		r = errUnexpected
	}
	if r.status == http.StatusInternalServerError {
		n.o.Log.Error("a request failed", "method", c.Method, "path", c.URL.Path, "request", c.id, "err", err)
	}
	body := map[string]string{"error": r.text}
	if r.named {
		body["request_id"] = c.id
	}
	_ = c.answer(r.status, body) // it returns nil
}

// answer sends a value as JSON.
func (c *call) answer(status int, body any) error {
	text, _ := json.Marshal(body) // of this package: it cannot fail
	c.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(text)
	return nil
}

// done sends an answer without a body, unless there is an error, which it returns.
func (c *call) done(status int, err error) error {
	if err == nil {
		c.w.WriteHeader(status)
	}
	return err
}

// attach has a browser save the answer as a file.
func (c *call) attach(name string) {
	c.w.Header().Set("Content-Type", "application/octet-stream")
	c.w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
}

// errNoSize reports an answer of berth without a size: its end would look like a cut, and a cut like its end.
var errNoSize = errors.New("berth has not announced the size of a file")

// stream answers with a content of size bytes, which the panel reads too: it refuses to edit what is large.
func (n *Node) stream(c *call, content io.Reader, size int64) error {
	if size < 0 {
		return errNoSize
	}
	c.w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	c.w.WriteHeader(http.StatusOK)
	if _, err := io.Copy(&steadyWriter{c, http.NewResponseController(c.w)}, content); err != nil {
		// the server closes the connection, because the answer is shorter than announced
		n.o.Log.Info("a file was not sent as a whole", "path", c.URL.Path, "err", err)
	}
	return nil
}

// decode reads the JSON body of a request. Fields that are not known are ignored.
func (c *call) decode(into any) error {
	text, err := io.ReadAll(http.MaxBytesReader(c.w, c.Body, maxBody))
	switch {
	case err != nil:
		return err
	case len(text) == 0:
		return errNoBody
	case json.Unmarshal(text, into) != nil:
		return errBadJSON
	}
	return nil
}

// addressOf returns the address of a connection, as the panel takes it: without a zone.
func addressOf(remote string) netip.Addr {
	at, _ := netip.ParseAddrPort(remote)
	return at.Addr().Unmap().WithZone("")
}

// Bound closes the oldest connection of the address that has most where a server has too many, so that nobody can keep
// others out. Those that have become sockets have bounds of their own.
func (n *Node) Bound(server *http.Server) {
	slots, open := limit.NewSlots(connections), sync.Map{}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			from, below := addressOf(c.RemoteAddr().String()), c
			if over, is := c.(*tls.Conn); is {
				below = over.NetConn() // whose end waits for no client
			}
			claim := limit.Claim{Tenant: limit.Network(from.String()), Shared: n.config().API.Trusts(from)}
			open.Store(c, slots.Push(claim, func() { _ = below.Close() }))
		case http.StateHijacked, http.StateClosed:
			if leave, is := open.LoadAndDelete(c); is {
				leave.(func())()
			}
		}
	}
}

// connections are the bounds of connections, by address.
func connections() limit.Bounds {
	b := limit.Connections()
	b.Anonymous = true
	return b
}

// address returns the address of the client, behind the proxies that the node trusts.
func (n *Node) address(r *http.Request) netip.Addr {
	at := addressOf(r.RemoteAddr)
	if !n.config().API.Trusts(at) {
		return at
	}
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(forwarded) {
		next, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			break
		}
		if at = next.Unmap().WithZone(""); !n.config().API.Trusts(at) {
			break
		}
	}
	return at
}

// Handler returns the handler of all requests.
func (n *Node) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range n.routes() {
		mux.HandleFunc(r.pattern, func(w http.ResponseWriter, request *http.Request) {
			c := &call{w: w, Request: request, id: w.Header().Get("X-Request-Id")}
			if err := n.serve(r, c); err != nil {
				n.answerError(c, err)
			}
		})
	}
	mux.HandleFunc("/", unknown)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { // the server reads what is left of the body
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(writeTime)) // of a socket: it is closed
		}()
		n.headers(w.Header(), r)
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// unknown answers to an address or a method that is none of the node's.
func unknown(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, "404 page not found")
}

// headers sets the headers of every answer.
func (n *Node) headers(h http.Header, r *http.Request) {
	c := n.config()
	h.Set("X-Request-Id", uuid.NewString())
	h.Set("Access-Control-Allow-Origin", c.Remote)
	if origin := r.Header.Get("Origin"); origin != "" && slices.Contains(c.AllowedOrigins, origin) {
		h.Set("Access-Control-Allow-Origin", origin)
	} else if slices.Contains(c.AllowedOrigins, "*") {
		h.Set("Access-Control-Allow-Origin", "*")
	}
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, PUT, DELETE, OPTIONS")
	h.Set("Access-Control-Allow-Headers",
		"Accept, Accept-Encoding, Authorization, Cache-Control, Content-Type, Content-Length, Origin, X-Real-IP, X-CSRF-Token")
	h.Set("Access-Control-Max-Age", "7200")
	if c.CORSPrivateNetwork {
		h.Set("Access-Control-Request-Private-Network", "true")
	}
	if strings.HasPrefix(r.URL.Path, "/api/") && r.Method != http.MethodOptions && !strings.HasSuffix(r.URL.Path, "/ws") {
		h.Set("User-Agent", Agent(n.o.Version, c.TokenID)) // of an answer: the panel compares it
	}
}

// Agent returns the name of a node, in its requests and in its answers.
func Agent(version, tokenID string) string {
	return fmt.Sprintf("Pelican Wings/v%s (id:%s)", version, tokenID)
}

// Identity returns as whom a node with a file calls its panel.
func Identity(version string, c config.Config) panel.Identity {
	return panel.Identity{TokenID: c.TokenID, Token: c.Token, Agent: Agent(version, c.TokenID)}
}

// serve answers one request: authorization first, then whether the server exists, then the handler.
func (n *Node) serve(r route, c *call) error {
	if r.access == panelOnly {
		if err := n.authorize(c); err != nil {
			return err
		}
	}
	if r.access == signed {
		leave, err := n.browsers.Enter(c.Context(), limit.Claim{Tenant: limit.Network(n.address(c.Request).String())})
		if err != nil {
			return refuse(http.StatusTooManyRequests, "Too many requests at once from this address.")
		}
		defer leave()
	}
	if id := c.PathValue("server"); id != "" {
		if c.server = n.find(id); c.server == nil {
			return errNoServer
		}
	}
	return r.handle(c)
}

// authorize compares the secret of a request with the node's.
func (n *Node) authorize(c *call) error {
	given, is := strings.CutPrefix(c.Header.Get("Authorization"), "Bearer ")
	if !is || given == "" {
		c.w.Header().Set("WWW-Authenticate", "Bearer")
		return errNoHeader
	}
	if subtle.ConstantTimeCompare([]byte(given), []byte(n.config().Token.Reveal())) != 1 {
		return errForbidden
	}
	return nil
}
