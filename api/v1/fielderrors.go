package v1

import (
	"fmt"
	"strings"
)

// FieldError is one error of a field of a request or of the configuration.
type FieldError struct {
	Key     string `json:"key"` // such as ports[1].port or server.port; empty: the configuration file as a whole
	Message string `json:"message"`
}

// String returns "key: message".
func (f FieldError) String() string {
	if f.Key == "" {
		return f.Message
	}
	return f.Key + ": " + f.Message
}

// FieldErrors is an error that lists everything that is wrong with a request or with
// the configuration. As a *Error it has the code InvalidRequest.
type FieldErrors []FieldError

// The limits of the errors of a request, whose body of a megabyte may have a million.
const (
	maxShownErrors = 20
	maxKeptErrors  = 100
)

// Full reports whether Add keeps no more errors.
func (f FieldErrors) Full() bool { return len(f) >= maxKeptErrors }

// Add adds the error of a field of a request, such as "ports[1].port". Only the
// first error of a field is kept, and none of the fields inside it.
func (f *FieldErrors) Add(key, format string, args ...any) {
	if f.Full() {
		return
	}
	for _, known := range *f {
		if inside, ok := strings.CutPrefix(key, known.Key); ok && (inside == "" || inside[0] == '.' || inside[0] == '[') {
			return
		}
	}
	*f = append(*f, FieldError{Key: key, Message: fmt.Sprintf(format, args...)})
}

// check adds the error of a key of the configuration unless ok.
func (f *FieldErrors) check(ok bool, key, format string, args ...any) {
	if !ok {
		*f = append(*f, FieldError{Key: key, Message: fmt.Sprintf(format, args...)})
	}
}

// Any reports whether there is an error.
func (f FieldErrors) Any() bool { return len(f) > 0 }

// Err returns f, or nil if there is no error.
func (f FieldErrors) Err() error {
	if !f.Any() {
		return nil
	}
	return f
}

// Error joins all kept errors.
func (f FieldErrors) Error() string { return f.text(len(f)) }

// Unwrap returns the refusal of a request, which shows the first errors and the
// number of the others.
func (f FieldErrors) Unwrap() error {
	return &Error{Code: InvalidRequest, Message: f.text(maxShownErrors)}
}

// text joins at most shown errors.
func (f FieldErrors) text(shown int) string {
	shown = min(shown, len(f))
	texts := make([]string, shown)
	for i := range texts {
		texts[i] = f[i].String()
	}
	if more := len(f) - shown; more > 0 && f.Full() {
		texts = append(texts, fmt.Sprintf("and at least %d more", more))
	} else if more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}
