package docker

import (
	"fmt"
	"regexp"
	"strings"

	"berth/runtime"
)

// pullTexts classifies the messages of a failed pull, after withoutReference has removed
// the client's text. The first rule that matches wins. Any other message says
// nothing about the image, for example if the registry cannot be reached or its
// name does not resolve (hack/adr/0067).
//
// Docker's own registry answers "repository does not exist or may require
// 'docker login'" also for private repositories; for this caller the image does
// not exist. It reports bad credentials as "incorrect username or password".
var pullTexts = []textRule{
	{"dial tcp", nil},
	{"dial udp", nil},
	{"no basic auth credentials", runtime.ErrDenied}, // the containerd store says "does not exist" too
	{"repository does not exist", runtime.ErrImageNotFound},
	{"manifest unknown", runtime.ErrImageNotFound},
	{"name unknown", runtime.ErrImageNotFound},
	{"repository name not known", runtime.ErrImageNotFound},
	{"no matching manifest", runtime.ErrImageNotFound},                    // no image for this machine's platform
	{"failed to resolve reference*: not found", runtime.ErrImageNotFound}, // the text of the containerd store
	{"invalid reference format", runtime.ErrInvalid},
	{"toomanyrequests", nil}, // a quota; a later pull may succeed
	{"unauthorized", runtime.ErrDenied},
	{"incorrect username or password", runtime.ErrDenied},
	{"authentication required", runtime.ErrDenied},
	{"permission denied", nil}, // for a file of the engine
	{"denied", runtime.ErrDenied},
}

// textRule gives a class to messages that contain a pattern. The pattern is in
// lower case, and "*" matches any text. A nil class means an unknown error.
type textRule struct {
	pattern string
	means   error
}

func (r textRule) matches(text string) bool {
	for part := range strings.SplitSeq(r.pattern, "*") {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

func (r textRule) wrap(err error) error {
	if r.means == nil {
		return err
	}
	return classifiedError{r.means, err}
}

// quoted matches the quoted parts of a message, such as the URL of the request.
var quoted = regexp.MustCompile(`"[^"]*"`)

// withoutReference returns a message in lower case without the image's reference, which
// may contain any word.
func withoutReference(text, ref string) string {
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

// pullError wraps an error of a pull of ref with its class, if the class is known.
func pullError(ref string, err error) error {
	if err == nil {
		return nil
	}
	text := withoutReference(err.Error(), ref)
	if strings.HasPrefix(detail(err), "manifest for ") && strings.Contains(text, "not found") {
		return classifiedError{runtime.ErrImageNotFound, err}
	}
	for _, r := range pullTexts {
		if r.matches(text) {
			return r.wrap(err)
		}
	}
	return err
}

// classifiedError is an error with a known class.
type classifiedError struct{ means, err error }

func (m classifiedError) Error() string   { return fmt.Sprintf("%s: %s", m.means, detail(m.err)) }
func (m classifiedError) Unwrap() []error { return []error{m.means, m.err} }
