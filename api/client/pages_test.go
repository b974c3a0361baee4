package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAllGetsPages: an iteration asks for the next page only if it needs it, and ends
// with the first error.
func TestAllGetsPages(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("continue"))
		switch r.URL.Query().Get("continue") {
		case "":
			fmt.Fprint(w, `{"containers":[{"internal_id":"a"},{"internal_id":"b"}],"continue":"x"}`)
		case "x":
			fmt.Fprint(w, `{"containers":[{"internal_id":"c"}],"continue":"y"}`)
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer s.Close()
	c, err := New(Options{URL: s.URL})
	require.NoError(t, err)
	var ids []string
	for item, err := range c.Containers().All(t.Context(), "game=chess") {
		if err != nil {
			require.Equal(t, http.StatusBadRequest, StatusOf(err))
			ids = append(ids, "error")
			continue
		}
		ids = append(ids, item.InternalID)
	}
	require.Equal(t, []string{"a", "b", "c", "error"}, ids)
	require.Equal(t, []string{"", "x", "y"}, asked)
	asked = nil
	for range c.Containers().All(t.Context()) {
		break
	}
	require.Equal(t, []string{""}, asked)
}
