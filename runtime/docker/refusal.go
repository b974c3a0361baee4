package docker

import (
	"fmt"
	"strings"

	"berth/runtime"
)

// refusals is what the messages of a pull mean. The first that is contained
// decides. Anything else, a registry that exists and cannot be reached above
// all, says nothing about the image.
//
// Docker's own registry answers "repository does not exist or may require
// 'docker login'" to whoever may not know; for its caller there is no such
// image. Bad credentials are told apart by it: "incorrect username or password".
var refusals = []reading{
	{"repository does not exist", runtime.ErrImageNotFound},
	{"manifest unknown", runtime.ErrImageNotFound},
	{"name unknown", runtime.ErrImageNotFound},
	{"repository name not known", runtime.ErrImageNotFound},
	{"no matching manifest", runtime.ErrImageNotFound}, // none for this machine's platform
	{": no such host", runtime.ErrImageNotFound},       // its registry does not exist: hack/adr/0014
	{"invalid reference format", runtime.ErrInvalid},
	{"toomanyrequests", nil}, // a quota; a later pull may succeed
	{"unauthorized", runtime.ErrDenied},
	{"no basic auth credentials", runtime.ErrDenied},
	{"incorrect username or password", runtime.ErrDenied},
	{"authentication required", runtime.ErrDenied},
	{"permission denied", nil}, // of a file of the engine's
	{"denied", runtime.ErrDenied},
}

// reading is what a message means that contains part; nil is nothing to act on.
type reading struct {
	part  string
	means error
}

func (r reading) wrap(err error) error {
	if r.means == nil {
		return err
	}
	return meaning{r.means, err}
}

// refusal wraps an error of a pull with what it means, if anything is known.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	text := strings.ToLower(err.Error())
	if strings.HasPrefix(detail(err), "manifest for ") && strings.Contains(text, "not found") {
		return meaning{runtime.ErrImageNotFound, err}
	}
	for _, r := range refusals {
		if strings.Contains(text, r.part) {
			return r.wrap(err)
		}
	}
	return err
}

// meaning is an error whose meaning is settled.
type meaning struct{ means, err error }

func (m meaning) Error() string   { return fmt.Sprintf("%s: %s", m.means, detail(m.err)) }
func (m meaning) Unwrap() []error { return []error{m.means, m.err} }
