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
	maxKey          = 255     // characters
	maxOutcomeBody  = 2 << 10 // bytes of a response; a larger one is not stored
	maxKeysPanel    = 100_000 // of the configured token
	maxKeysPerToken = 1000    // of a minted token and those minted with it
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

	mu   sync.Mutex
	busy map[string]bool // by owner and key: requests in progress
}

func newIdempotency(db *store.Store, r prometheus.Registerer) *idempotency {
	s := &idempotency{store: db, busy: map[string]bool{}, replayed: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "berth_idempotent_replays_total",
		Help: "Requests that received the stored response of an earlier request with the same idempotency key.",
	})}
	r.MustRegister(s.replayed)
	return s
}

// replay is the error of a request whose outcome is stored: its response.
type replay struct{ store.Outcome }

// Error is never shown: guard sends the response.
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
	r := c.entry
	if len(values) == 0 || c.Method() != http.MethodPost || r == nil || r.Outcome != nil {
		return nil
	}
	key := string(values[0])
	if len(values) > 1 || key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
		return errKey
	}
	actor := c.actor()
	o := &store.Outcome{Owner: actor.TokenID, Quota: c.caller.Root(), Key: digest(key, actor.OnBehalfOf),
		Fingerprint: digest(c.Method(), string(c.Request().RequestURI()), string(body)),
		Status:      edge.Status(errKeyLost), Code: string(errKeyLost.Code), Body: errorText(errKeyLost)}
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
	return s.store.View(func(tx *store.Tx) error {
		stored, err := store.FindOutcome(tx, o)
		if errors.Is(err, store.ErrNotFound) {
			return mayAdd(tx, o)
		}
		switch {
		case err != nil:
			return err
		case stored.Fingerprint != o.Fingerprint:
			return errKeyUsed
		}
		s.replayed.Inc()
		return replay{stored}
	})
}

// mayAdd returns errKeys if too many outcomes are stored for another one.
func mayAdd(tx *store.Tx, o store.Outcome) error {
	n, err := store.Outcomes(tx, o.Quota, maxKeys(o))
	if err == nil && n >= maxKeys(o) {
		return errKeys
	}
	return err
}

// maxKeys returns how many outcomes of its quota are stored when another one is refused.
// The tokens minted with a minted token leave half of its keys to it.
func maxKeys(o store.Outcome) int {
	switch {
	case o.Quota == v1.Administrator:
		return maxKeysPanel
	case o.Owner != o.Quota:
		return maxKeysPerToken / 2
	}
	return maxKeysPerToken
}

func (s *idempotency) reserve(o *store.Outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[o.Owner+o.Key] {
		return false
	}
	s.busy[o.Owner+o.Key] = true
	return true
}

func (s *idempotency) release(o *store.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, o.Owner+o.Key)
}

// final returns the outcome that is stored for a complete response; nil: none, so that
// a repetition is carried out.
func final(c *fiber.Ctx, r *store.Request) *store.Outcome {
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
