package openapitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"berth/api"
)

// load parses and validates the document once.
var load = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(api.Document)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background())
})

// Document returns the OpenAPI document, and fails the test if it is invalid.
func Document(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := load()
	if err != nil {
		t.Fatalf("openapi.yaml: %v", err)
	}
	return doc
}

// Routes returns the endpoints of the document, such as "GET /volumes/{volume}".
func Routes(t testing.TB) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for path, item := range Document(t).Paths.Map() {
		for method := range item.Operations() {
			all[method+" "+path] = true
		}
	}
	return all
}

// Check fails t unless the document allows this response to this request. body is
// the complete body of resp; resp.Body may have been read. A deviation is described
// once in a process.
func Check(t testing.TB, req *http.Request, resp *http.Response, body []byte) {
	t.Helper()
	if err := check(Document(t), req, resp, body); err != nil {
		reported().fail(t, req, resp, err, body)
	}
}

func check(doc *openapi3.T, req *http.Request, resp *http.Response, body []byte) error {
	if req.Method == http.MethodOptions && req.Header.Get("Origin") != "" && req.Header.Get("Access-Control-Request-Method") != "" {
		return oneOf(resp, 204, 403) // a preflight of any path, which the introduction describes
	}
	if resp.StatusCode >= 400 && req.Method != http.MethodHead {
		if err := checkError(resp, body); err != nil {
			return err
		}
	}
	item := find(doc, req.URL.EscapedPath())
	if item == nil {
		return oneOf(resp, 401, 403, 404)
	}
	operation := item.GetOperation(req.Method)
	if operation == nil {
		if req.Method == http.MethodHead {
			return nil
		}
		return oneOf(resp, 401, 403, 405)
	}
	if err := checkHead(operation, resp); err != nil {
		return err
	}
	if err := checkRequest(operation, req, resp); err != nil {
		return err
	}
	return checkBody(operation, resp, body)
}

// checkHead checks the status and the headers of a response.
func checkHead(operation *openapi3.Operation, resp *http.Response) error {
	documented := operation.Responses.Status(resp.StatusCode)
	if documented == nil {
		return fmt.Errorf("the document has no status %d", resp.StatusCode)
	}
	s, err := loadSchemas()
	if err != nil {
		return err
	}
	for name, header := range documented.Value.Headers {
		if err := s.checkHeader(name, header, resp.Header.Values(name)); err != nil {
			return err
		}
	}
	return nil
}

// checkHeader checks the values of one header, which is a component.
func (s *schemas) checkHeader(name string, header *openapi3.HeaderRef, values []string) error {
	if header.Value.Required && len(values) == 0 {
		return fmt.Errorf("the header %s is missing", name)
	}
	for _, value := range values {
		text := []byte(value)
		if !header.Value.Schema.Value.Type.Is("integer") {
			text, _ = json.Marshal(value) // a string cannot fail to marshal
		}
		if err := s.validate(header.Ref+"/schema", text); err != nil {
			return fmt.Errorf("the header %s: %w", name, err)
		}
	}
	return nil
}

// checkRequest checks the JSON body of a request that was accepted.
func checkRequest(operation *openapi3.Operation, req *http.Request, resp *http.Response) error {
	if resp.StatusCode >= 300 || operation.RequestBody == nil || req.GetBody == nil {
		return nil
	}
	content := operation.RequestBody.Value.Content["application/json"]
	if content == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return err
	}
	text, err := io.ReadAll(body)
	if err != nil || len(text) == 0 {
		return err
	}
	s, err := loadSchemas()
	if err != nil {
		return err
	}
	if err := s.validate(content.Schema.Ref, text); err != nil {
		return fmt.Errorf("the accepted request %.500s: %w", text, err)
	}
	return nil
}

// checkBody checks a JSON body against its schema.
func checkBody(operation *openapi3.Operation, resp *http.Response, body []byte) error {
	const mediaType = "application/json"
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != mediaType {
		return nil
	}
	content := operation.Responses.Status(resp.StatusCode).Value.Content[mediaType]
	if content == nil {
		return errors.New("the document has no JSON body for this status")
	}
	s, err := loadSchemas()
	if err != nil {
		return err
	}
	return s.validate(content.Schema.Ref, body)
}

// checkError returns an error unless body is exactly {"error": text} and the
// response has an X-Error-Code.
func checkError(resp *http.Response, body []byte) error {
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		return err
	}
	text, _ := fields["error"].(string)
	if len(fields) != 1 || text == "" || resp.Header.Get("X-Error-Code") == "" {
		return errors.New("an error response must be {\"error\": text} with the header X-Error-Code")
	}
	return nil
}

func oneOf(resp *http.Response, statuses ...int) error {
	for _, s := range statuses {
		if resp.StatusCode == s {
			return nil
		}
	}
	return errors.New("the document has no such route")
}

// find returns the path item of the document that matches a request's path; of
// several the one with the fewest parameters.
func find(doc *openapi3.T, path string) (item *openapi3.PathItem) {
	found, have := "", strings.Split(strings.TrimRight(path, "/"), "/")
	for pattern, candidate := range doc.Paths.Map() {
		if strings.Count(pattern, "/") == len(have)-1 && matches(strings.Split(pattern, "/"), have) &&
			(item == nil || strings.Count(pattern, "{") < strings.Count(found, "{")) {
			found, item = pattern, candidate
		}
	}
	return item
}

func matches(want, have []string) bool {
	for i := range want {
		if want[i] != have[i] && (!strings.HasPrefix(want[i], "{") || have[i] == "") {
			return false
		}
	}
	return true
}
