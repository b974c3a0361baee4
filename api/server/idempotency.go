package server

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"berth/api/limit"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotent-Replayed"
)

// Limits on idempotency keys. An outcome is kept for v1.OutcomeRetention.
const (
	maxKey         = 255     // characters
	maxOutcomeBody = 2 << 10 // bytes of a response; a larger one is not stored
)

// Refusals of requests with an idempotency key.
var (
	errKey     = v1.Errorf(v1.InvalidRequest, keyHeader+": must be one value of 1 to 255 printable ASCII characters")
	errKeyUsed = v1.Errorf(v1.KeyReused, keyHeader+" was used with another request: use a new key")
	errKeyBusy = v1.Errorf(v1.KeyInUse, "A request with this "+keyHeader+" is in progress: send it again later")
	errKeyLost = v1.Errorf(v1.OutcomeUnknown, "The request with this "+keyHeader+" was carried out, and its response is not stored: "+
		"read the state, and use a new key for another request")
	errKeys = v1.Errorf(v1.TooManyKeys, "Token has used too many values of "+keyHeader+" within 24 hours: send the request without it")
)

// idempotency makes a repetition of a request with the same key receive the response of
// the first one.
type idempotency struct {
	store    *store.Store
	replayed prometheus.Counter
	panel    *limit.Rate // stored outcomes of the configured token
	minted   *limit.Rate // of minted tokens, by the first one in the line of parents

	mu   sync.Mutex
	busy map[string]bool // by token and key: requests in progress
}

func newIdempotency(db *store.Store, r prometheus.Registerer) *idempotency {
	s := &idempotency{store: db, busy: map[string]bool{}, panel: limit.NewRate(limit.PanelKeys()),
		minted: limit.NewRate(limit.Keys()), replayed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_idempotent_replays_total",
			Help: "Requests that received the stored response of an earlier request with the same idempotency key.",
		})}
	r.MustRegister(s.replayed)
	return s
}

// replay is the error of a request whose outcome is stored: its response.
type replay struct{ store.Outcome }

// Error is never shown: handler sends the response.
func (replay) Error() string { return "the stored response is sent" }

// send answers with the stored response.
func (o replay) send(c *fiber.Ctx) error {
	c.Set(replayedHeader, "true")
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	if o.Code != "" {
		c.Set("X-Error-Code", o.Code)
	}
	return c.Status(o.Status).Send(o.Body)
}

// begin reserves the key of a POST, if it has one. body is the body of the request.
// Its error is a replay if the outcome is stored.
func (s *idempotency) begin(c *call, body []byte) error {
	values := c.Request().Header.PeekAll(keyHeader)
	r := c.request
	if len(values) == 0 || c.Method() != http.MethodPost || r == nil || r.Outcome != nil {
		return nil
	}
	key := string(values[0])
	if len(values) > 1 || key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
		return errKey
	}
	actor := c.actor()
	o := &store.Outcome{TokenID: actor.TokenID, Quota: c.caller.Root(), Key: digest(key, actor.OnBehalfOf),
		Fingerprint: digest(c.Method(), string(c.Request().RequestURI()), string(body)), UID: c.uid,
		Status: edge.Status(errKeyLost), Code: string(errKeyLost.Code), Body: errorText(errKeyLost)}
	if !s.reserve(o) {
		return errKeyBusy
	}
	err := s.find(*o)
	if err != nil {
		var stored replay
		if errors.As(err, &stored) {
			stored.Describe(&r.Audit)
		}
		s.release(o)
		return err
	}
	r.Outcome = o
	return nil
}

// find returns nil if the key is new.
func (s *idempotency) find(o store.Outcome) error {
	stored, err := store.FindOutcome(s.store.Read(), o)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return s.mayAdd(o)
	case err != nil:
		return err
	case stored.Fingerprint != o.Fingerprint, stored.UID != "" && o.UID != "" && stored.UID != o.UID: // made again under its id
		return errKeyUsed
	}
	s.replayed.Inc()
	return replay{stored}
}

// mayAdd returns errKeys if too many outcomes were stored for another one. The tokens minted with a
// minted token leave half of its keys to it.
func (s *idempotency) mayAdd(o store.Outcome) error {
	rate, most := s.rateOf(o)
	n := 1
	if o.TokenID != o.Quota {
		n += most / 2
	}
	if rate.Left(o.Quota, n) > 0 {
		return errKeys
	}
	return nil
}

// rateOf returns what counts an outcome, and its most at once.
func (s *idempotency) rateOf(o store.Outcome) (*limit.Rate, int) {
	if o.Quota == v1.Administrator {
		return s.panel, limit.PanelKeys().Burst
	}
	return s.minted, limit.Keys().Burst
}

func (s *idempotency) reserve(o *store.Outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[o.TokenID+o.Key] {
		return false
	}
	s.busy[o.TokenID+o.Key] = true
	return true
}

// stored counts an outcome that was stored.
func (s *idempotency) stored(o store.Outcome) {
	rate, _ := s.rateOf(o)
	rate.Count(o.Quota, 1)
}

func (s *idempotency) release(o *store.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, o.TokenID+o.Key)
}

// final returns the outcome that is stored for a complete response; nil: none, so that
// a repetition is carried out.
func final(c *call, r *store.Request) *store.Outcome {
	if r.Outcome == nil {
		return nil
	}
	status, body := c.Response().StatusCode(), c.Response().Body()
	switch {
	case r.Audit.Action == "": // it has changed nothing that is stored: a ticket, which is a secret
		return nil
	case status >= 500, status == 401, status == 429: // others that a repetition may pass come before begin
		return nil
	case len(body) > maxOutcomeBody && status >= 400:
		return nil
	case len(body) > maxOutcomeBody, r.Audit.Action == "token.create" && status < 400: // a secret is not stored
		return r.Outcome
	}
	o := *r.Outcome
	o.Status, o.Code, o.Body = status, c.GetRespHeader("X-Error-Code"), append([]byte(nil), body...)
	return &o
}

// promise returns the store as a request changes it, whose response after the change is
// known before. So the response is stored with the change.
func (c *call) promise(db *store.Store, body func(object string) any) *store.Request {
	r := c.writer(db)
	r.Success = c.success()
	r.Body = func(object string) []byte {
		text, _ := json.Marshal(body(object)) // plain data: it cannot fail
		return text
	}
	return r
}

func errorText(e *v1.Error) []byte {
	text, _ := json.Marshal(map[string]string{"error": e.Message}) // plain data: it cannot fail
	return text
}

// digest returns a hash of parts, in hex.
func digest(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:", len(part)) // so that no other parts have the same text
		_, _ = io.WriteString(sum, part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
