package intent

import (
	"fmt"
	"strings"

	v1 "berth/api/v1"
)

// maxErrors bounds how many faults one message tells, and keptErrors how many
// are told apart: a body of a megabyte may have a million.
const (
	maxErrors  = 20
	keptErrors = 1000
)

// FieldErrors collects what is wrong with a request, field by field, so that a
// client is told all of it at once. Its zero value is empty.
type FieldErrors struct {
	texts  []string
	fields map[string]bool
	over   int // how many more than keptErrors
}

// Add notes a fault of a field, such as "ports[1].port". Only the first fault
// of a field is kept, and none of what is inside it.
func (f *FieldErrors) Add(field, format string, args ...any) {
	if len(f.texts) == keptErrors {
		f.over++
		return
	}
	for i := range len(field) + 1 {
		if (i == len(field) || field[i] == '.' || field[i] == '[') && f.fields[field[:i]] {
			return
		}
	}
	if f.fields == nil {
		f.fields = map[string]bool{}
	}
	f.fields[field] = true
	f.texts = append(f.texts, field+": "+fmt.Sprintf(format, args...))
}

// Any says whether there is a fault.
func (f *FieldErrors) Any() bool { return len(f.texts) > 0 }

// Err is a v1.Error of code InvalidRequest that tells every fault, or nil.
func (f *FieldErrors) Err() error {
	if !f.Any() {
		return nil
	}
	texts := f.texts
	if over := len(texts) + f.over - maxErrors; over > 0 {
		texts = append(texts[:maxErrors:maxErrors], fmt.Sprintf("and %d more", over))
	}
	return &v1.Error{Code: v1.InvalidRequest, Message: strings.Join(texts, "; ")}
}
