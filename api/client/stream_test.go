package client

import (
	"errors"
	"net/http"
	"testing"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

func TestStreamErrors(t *testing.T) {
	c, _ := script(t, connection{messages: []string{"pong"}}, connection{code: websocket.ClosePolicyViolation}, connection{status: http.StatusNotFound})
	open := func() error {
		s, err := c.Containers().Open(t.Context(), "mc", OpenOptions{})
		if err != nil {
			return err
		}
		defer s.Close()
		_, err = s.Next()
		return err
	}
	require.ErrorIs(t, open(), ErrNotBerth)
	var closed *CloseError
	require.ErrorAs(t, open(), &closed)
	require.True(t, closed.Permanent())
	require.False(t, closed.Deleted())
	require.Equal(t, "the daemon closed the stream: reason", closed.Error())
	require.Equal(t, http.StatusNotFound, StatusOf(open()))
	require.True(t, isPermanent(&Error{Status: 404}))
	require.False(t, isPermanent(&Error{Status: 429}))
	require.False(t, isPermanent(errors.New("connection refused")))
}
