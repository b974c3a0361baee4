package intent

import (
	"fmt"
	"strings"

	v1 "berth/api/v1"
)

// maxFaults bounds how many faults one message tells, and keptFaults how many
// are told apart: a body of a megabyte may have a million.
const (
	maxFaults  = 20
	keptFaults = 1000
)

// Faults collects what is wrong with a request, field by field, so that a
// client is told all of it at once. Its zero value is empty.
type Faults struct {
	texts  []string
	fields map[string]bool
	over   int // how many more than keptFaults
}

// Add notes a fault of a field, such as "ports[1].port". Only the first fault
// of a field is kept, and none of what is inside it.
func (f *Faults) Add(field, format string, args ...any) {
	if len(f.texts) == keptFaults {
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
func (f *Faults) Any() bool { return len(f.texts) > 0 }

// Err is a v1.Error of code InvalidRequest that tells every fault, or nil.
func (f *Faults) Err() error {
	if !f.Any() {
		return nil
	}
	texts := f.texts
	if over := len(texts) + f.over - maxFaults; over > 0 {
		texts = append(texts[:maxFaults:maxFaults], fmt.Sprintf("and %d more", over))
	}
	return &v1.Error{Code: v1.InvalidRequest, Message: strings.Join(texts, "; ")}
}
