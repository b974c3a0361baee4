package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"berth/hack/test/berthtest"
)

// client sends one request after another. Its objects are its own, but for the ports, which all contend for.
type client struct {
	*world
	n        int
	random   *rand.Rand
	games    []*game
	data     data
	tokens   []*token
	requests atomic.Int64
	counts   map[string]int // outcomes
	made     int            // unique numbers
	history  []string

	port       register // 1 while portNumber is in the pool
	portNumber int
}

// outcome is what a client knows about its request.
type outcome int

const (
	refused outcome = iota // nothing has changed
	done
	lost // no answer: it holds as a whole, or not at all
)

func (o outcome) String() string { return [...]string{"refused", "done", "lost"}[o] }

// answer is the outcome of a request, and its response unless that is lost.
type answer struct {
	berthtest.Answer
	outcome outcome
}

func (a answer) code() string { return a.Header.Get("X-Error-Code") }

// run takes steps until the test ends.
func (c *client) run() {
	for !c.ended.Load() && !c.t.Failed() {
		c.turn()
	}
}

func (c *client) turn() {
	c.gate.RLock()
	defer c.gate.RUnlock()
	c.step()
}

// step does one random thing.
func (c *client) step() {
	switch n := c.random.IntN(100); {
	case n < 70:
		c.games[c.random.IntN(len(c.games))].step()
	case n < 86:
		c.data.step(c)
	case n < 94:
		c.stepTokens()
	default:
		c.stepPort()
	}
}

// unique returns a number that this client has not used before.
func (c *client) unique() int { c.made++; return c.made }

func (c *client) chance(percent int) bool { return c.random.IntN(100) < percent }

// call sends a request until the daemon answers with a decision, or the answer is lost because the daemon was killed.
func (c *client) call(method, path string, body any, header ...string) (a answer) {
	for began := time.Now(); time.Since(began) < wait; time.Sleep(10 * time.Millisecond) {
		response, err := c.b.Try(context.Background(), method, path, body, header...)
		if errors.Is(err, syscall.ECONNREFUSED) {
			continue // no daemon has received it
		}
		if err != nil {
			c.dead()
			c.note("%s %s %v: %v", method, path, header, err)
			return answer{outcome: lost}
		}
		if response.Status == 429 || response.Status == 503 || response.Header.Get("X-Error-Code") == "idempotency_key_in_use" {
			continue // to be sent again later
		}
		c.requests.Add(1)
		a = answer{response, refused}
		if response.Status < 300 {
			a.outcome = done
		}
		if method != "GET" {
			c.note("%s %s %v %.150s: %d %.120s", method, path, header, text(body), response.Status, response.Body)
		}
		return a
	}
	c.violated(c, "%s %s has no answer", method, path)
	return answer{outcome: refused}
}

// dead waits until the daemon that may have received a request is dead: what it has not done by then, nobody does.
func (c *client) dead() {
	if !berthtest.Within(wait, func() bool { return c.lives.Load()%2 == 0 }) {
		c.violated(c, "the daemon does not die")
	}
}

// change sends a request that changes something, and counts its outcome. A POST often has an Idempotency-Key; then it
// may be repeated, and the outcome of all is that of the one that was carried out.
func (c *client) change(name, method, path string, body any, header ...string) answer {
	keyed := method == "POST" && c.chance(60)
	if keyed {
		header = append(header, "Idempotency-Key", fmt.Sprintf("key-%d-%d", c.n, c.unique()))
	}
	select {
	case c.sending <- struct{}{}:
	default:
	}
	a := c.call(method, path, body, header...)
	for keyed && a.outcome == lost && c.chance(80) {
		c.counts["repeated"]++
		a = c.call(method, path, body, header...)
	}
	if a.code() == "idempotency_outcome_unknown" {
		a.outcome = lost // the first one was carried out; the caller finds out what it did
	}
	if keyed && a.outcome == done && c.chance(30) {
		c.checkReplay(a, method, path, body, header...)
	}
	c.counts[name+" "+a.outcome.String()]++
	return a
}

// checkReplay repeats a keyed request that was answered.
func (c *client) checkReplay(a answer, method, path string, body any, header ...string) {
	again := c.call(method, path, body, header...)
	if again.outcome == lost || again.code() == "idempotency_outcome_unknown" {
		return
	}
	if again.Status != a.Status || string(again.Body) != string(a.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
		c.violated(c, "%s %s was answered with %d %s, and its repetition with %d %s", method, path, a.Status, a.Body, again.Status, again.Body)
	}
}

// get reads an object; found is false if the answer is 404.
func (c *client) get(path string, into any, header ...string) (found bool) {
	for {
		a := c.call("GET", path, nil, header...)
		switch {
		case a.outcome == lost:
			continue
		case a.Status == 404:
			return false
		case a.Status != 200:
			c.violated(c, "GET %s: %d %s", path, a.Status, a.Body)
			return false
		}
		if into != nil {
			a.Decode(c.t, into)
		}
		return true
	}
}

// repeat sends a request that may be repeated until it is answered.
func (c *client) repeat(method, path string, body any) answer {
	for {
		if a := c.call(method, path, body); a.outcome != lost {
			return a
		}
	}
}

func (c *client) note(format string, args ...any) {
	line := time.Now().Format("15:04:05.000 ") + fmt.Sprintf(format, args...)
	c.history = append(c.history[max(0, len(c.history)-60):], line)
}

func (c *client) trace() string { return strings.Join(c.history, "\n") }

func text(body any) string {
	encoded, _ := json.Marshal(body)
	return string(encoded)
}

// register is a value that requests replace as a whole.
type register struct {
	name     string
	possible []int // more than one after a lost answer
}

// wrote records the outcome of a request that sets the register.
func (r *register) wrote(value int, o outcome) {
	switch o {
	case done:
		r.possible = []int{value}
	case lost:
		r.possible = append(r.possible, value)
	}
}

// read compares an observed value with the model.
func (r *register) read(c *client, value int) {
	if !slices.Contains(r.possible, value) {
		c.violated(c, "%s is %d, and must be one of %v", r.name, value, r.possible)
	}
	r.possible = []int{value}
}
