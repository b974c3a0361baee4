package docker

import (
	"fmt"
	"regexp"
	"strings"

	"berth/runtime"
)

// refusals is what the messages of a pull mean, without what the client chose.
// The first that matches decides. Anything else says nothing about the image: a
// registry that cannot be reached, or whose name does not resolve, above all
// (hack/adr/0067).
//
// Docker's own registry answers "repository does not exist or may require
// 'docker login'" to whoever may not know; for its caller there is no such
// image. Bad credentials are told apart by it: "incorrect username or password".
var refusals = []reading{
	{"dial tcp", nil},
	{"dial udp", nil},
	{"no basic auth credentials", runtime.ErrDenied}, // the containerd store says "does not exist" too
	{"repository does not exist", runtime.ErrImageNotFound},
	{"manifest unknown", runtime.ErrImageNotFound},
	{"name unknown", runtime.ErrImageNotFound},
	{"repository name not known", runtime.ErrImageNotFound},
	{"no matching manifest", runtime.ErrImageNotFound},                    // none for this machine's platform
	{"failed to resolve reference*: not found", runtime.ErrImageNotFound}, // the containerd store's word
	{"invalid reference format", runtime.ErrInvalid},
	{"toomanyrequests", nil}, // a quota; a later pull may succeed
	{"unauthorized", runtime.ErrDenied},
	{"incorrect username or password", runtime.ErrDenied},
	{"authentication required", runtime.ErrDenied},
	{"permission denied", nil}, // of a file of the engine's
	{"denied", runtime.ErrDenied},
}

// reading is what a message means that contains a pattern, in lower case, in
// which "*" is any text. nil is nothing to act on.
type reading struct {
	pattern string
	means   error
}

func (r reading) matches(text string) bool {
	for part := range strings.SplitSeq(r.pattern, "*") {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

func (r reading) wrap(err error) error {
	if r.means == nil {
		return err
	}
	return meaning{r.means, err}
}

// quoted is what a message of a pull has in quotes: the address that was asked.
var quoted = regexp.MustCompile(`"[^"]*"`)

// unnamed returns a message in lower case without the image's reference, in
// which any word may stand.
func unnamed(text, ref string) string {
	text = quoted.ReplaceAllString(text, "")
	repository, _, _ := strings.Cut(ref, "@")
	if colon := strings.LastIndex(repository, ":"); colon > strings.LastIndex(repository, "/") {
		repository = repository[:colon]
	}
	if repository == "" {
		return strings.ToLower(text)
	}
	return strings.ToLower(strings.ReplaceAll(text, repository, ""))
}

// refusal wraps an error of a pull of ref with what it means, if anything is known.
func refusal(ref string, err error) error {
	if err == nil {
		return nil
	}
	text := unnamed(err.Error(), ref)
	if strings.HasPrefix(detail(err), "manifest for ") && strings.Contains(text, "not found") {
		return meaning{runtime.ErrImageNotFound, err}
	}
	for _, r := range refusals {
		if r.matches(text) {
			return r.wrap(err)
		}
	}
	return err
}

// meaning is an error whose meaning is settled.
type meaning struct{ means, err error }

func (m meaning) Error() string   { return fmt.Sprintf("%s: %s", m.means, detail(m.err)) }
func (m meaning) Unwrap() []error { return []error{m.means, m.err} }
