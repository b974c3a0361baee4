package openapitest

import (
	"net/http"
	"sync"
	"testing"
)

// faults are the deviations from the document that tests of this process have
// reported, each with the first test. A wrong schema fails most tests of an interface:
// the others name that test instead of repeating it.
type faults struct {
	mu    sync.Mutex
	first map[string]string
}

// reported returns the faults of this process.
var reported = sync.OnceValue(func() *faults { return &faults{first: map[string]string{}} })

// fail fails t because of err.
func (f *faults) fail(t testing.TB, req *http.Request, resp *http.Response, err error, body []byte) {
	t.Helper()
	f.mu.Lock()
	test, known := f.first[err.Error()]
	if !known {
		f.first[err.Error()] = t.Name()
	}
	f.mu.Unlock()
	name := req.Method + " " + req.URL.Path
	switch {
	case !known:
		t.Errorf("%s: answer %d is not in api/openapi.yaml: %v\n%.500s", name, resp.StatusCode, err, body)
	case test == t.Name():
		t.Fail()
	default:
		t.Errorf("%s: answer %d is not in api/openapi.yaml; see %s", name, resp.StatusCode, test)
	}
}
