package openapitest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder is a test that keeps what it is failed with.
type recorder struct {
	testing.TB
	name   string
	texts  []string
	failed bool
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return r.name }
func (r *recorder) Fail()        { r.failed = true }
func (r *recorder) Errorf(format string, args ...any) {
	r.failed = true
	r.texts = append(r.texts, fmt.Sprintf(format, args...))
}

// TestFaultIsDescribedOnce requires that each test fails, and that the first alone
// describes the fault.
func TestFaultIsDescribedOnce(t *testing.T) {
	f := &faults{first: map[string]string{}}
	req, resp := &http.Request{Method: "GET", URL: &url.URL{Path: "/volumes"}}, &http.Response{StatusCode: 200}
	first, second := &recorder{TB: t, name: "TestA"}, &recorder{TB: t, name: "TestB"}
	for range 3 {
		f.fail(first, req, resp, errors.New("the schema differs"), []byte("{}"))
	}
	f.fail(second, req, resp, errors.New("the schema differs"), []byte("{}"))
	require.True(t, first.failed && second.failed)
	require.Equal(t, []string{"GET /volumes: answer 200 is not in api/openapi.yaml: the schema differs\n{}"}, first.texts)
	require.Equal(t, []string{"GET /volumes: answer 200 is not in api/openapi.yaml; see TestA"}, second.texts)
}
