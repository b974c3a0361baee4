package paneltest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// Node is a node as the panel and browsers call it.
type Node struct{ URL string }

// Answer is a complete answer of a node.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Error returns the sentence that the panel shows.
func (a Answer) Error() string {
	var body struct{ Error string }
	_ = json.Unmarshal([]byte(a.Body), &body)
	return body.Error
}

// Decode decodes the body.
func (a Answer) Decode(t testing.TB, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.Body), into), a.Body)
}

// Do sends a request as the panel does. body is nil, a text that is sent as it is, or a value that is
// sent as JSON. header holds pairs that replace or, with an empty value, remove headers.
func (n Node) Do(t testing.TB, method, path string, body any, header ...string) Answer {
	t.Helper()
	a, err := n.Try(t, method, path, body, header...)
	require.NoError(t, err)
	return a
}

// Try is Do for a node that may not answer.
func (n Node) Try(t testing.TB, method, path string, body any, header ...string) (Answer, error) {
	t.Helper()
	var reader io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(body)
	default:
		text, err := json.Marshal(body)
		require.NoError(t, err)
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, n.URL+path, reader)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+Token)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		if request.Header.Set(header[i], header[i+1]); header[i+1] == "" {
			request.Header.Del(header[i])
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, string(text)}, err
}

// Want calls Do and requires a status.
func (n Node) Want(t testing.TB, status int, method, path string, body any) Answer {
	t.Helper()
	a := n.Do(t, method, path, body)
	require.Equal(t, status, a.Status, "%s %s: %s", method, path, a.Body)
	return a
}

// User is the customer of the tokens that Sign makes.
const User = "0e0e0e0e-0000-4000-8000-0e0e0e0e0e0e"

// Sign returns a token as Pelican's panel makes it, for ten minutes. claims are added to the usual ones;
// a nil one is left out.
func Sign(t testing.TB, claims map[string]any) string {
	t.Helper()
	now := time.Now().Unix()
	all := jwt.MapClaims{"iss": "http://panel.test", "aud": []string{"http://node.test"}, "jti": "hash",
		"iat": now, "nbf": now - 300, "exp": now + 600,
		"user_uuid": User}
	for name, value := range claims {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, all).SignedString([]byte(Token))
	require.NoError(t, err)
	return token
}
