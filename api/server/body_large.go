package server

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/gofiber/fiber/v2"
)

// largeBody is a JSON body for which the client has no time limit, as long as it
// goes on sending.
type largeBody struct {
	c            *fiber.Ctx
	small, limit int64 // bytes
}

// read reads the body. Before it keeps more than small bytes it calls wait.
func (b largeBody) read(wait func()) ([]byte, error) {
	if err := checkMediaType(b.c); err != nil {
		return nil, err
	}
	length := int64(b.c.Request().Header.ContentLength())
	if length > b.limit {
		return nil, errTooLarge
	}
	var raw bytes.Buffer
	var err error
	body := wholeBody(b.c)
	if length <= b.small { // also what does not say its length
		_, err = raw.ReadFrom(io.LimitReader(body, b.small+1))
	}
	if err == nil && max(length, int64(raw.Len())) > b.small {
		wait()
		_, err = raw.ReadFrom(io.LimitReader(body, b.limit+1-int64(raw.Len())))
	}
	switch {
	case int64(raw.Len()) > b.limit:
		return nil, errTooLarge
	case errors.Is(err, error(errTimeout)):
		return nil, errTimeout
	case err != nil:
		return nil, errMalformed
	}
	return raw.Bytes(), nil
}

// queues let one at a time pass, for each name. The zero value is ready to use.
type queues struct {
	mu  sync.Mutex
	all map[string]*queue
}

type queue struct {
	mu    sync.Mutex
	users int // that wait or have passed; the queue goes with the last
}

// enter waits until the one before has left.
func (q *queues) enter(name string) (leave func()) {
	q.mu.Lock()
	if q.all == nil {
		q.all = map[string]*queue{}
	}
	one := q.all[name]
	if one == nil {
		one = &queue{}
		q.all[name] = one
	}
	one.users++
	q.mu.Unlock()
	one.mu.Lock()
	return func() {
		one.mu.Unlock()
		q.mu.Lock()
		defer q.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(q.all, name)
		}
	}
}
