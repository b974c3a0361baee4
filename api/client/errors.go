package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"

	v1 "berth/api/v1"
)

// ErrNotBerth is the error for a response that a berth daemon does not send.
var ErrNotBerth = errors.New("the response is not that of a berth daemon")

// Error is a response whose status is not 2xx.
type Error struct {
	Status    int
	Code      v1.Code // of X-Error-Code; empty if the response has none
	Message   string
	RequestID string // names the request in the daemon's log
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Is reports whether target is a *v1.Error with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*v1.Error)
	return ok && e.Code != "" && t.Code == e.Code
}

// StatusOf returns the status of an *Error, and 0 for any other error.
func StatusOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// errorOf returns the error of a response: its {"error": ...}, or its status line.
func errorOf(response *http.Response, text []byte) error {
	var body struct{ Error string }
	_ = json.Unmarshal(text, &body) // a proxy may send anything
	return &Error{Status: response.StatusCode, Message: cmp.Or(body.Error, response.Status),
		Code: v1.Code(response.Header.Get("X-Error-Code")), RequestID: response.Header.Get("X-Request-Id")}
}
