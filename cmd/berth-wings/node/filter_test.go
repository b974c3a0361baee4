package node

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// duplex reads from the one and writes to the other.
type duplex struct {
	io.Reader
	io.Writer
}

// TestLongNames: a client that reads no answers cannot have the filter keep many long names.
func TestLongNames(t *testing.T) {
	var sent bytes.Buffer
	for id := range uint32(1000) {
		sent.Write(request(fxRemove, id, ssh.Marshal(struct{ Name string }{strings.Repeat("x", 100_000)})))
	}
	f := &filter{client: duplex{&sent, io.Discard}, berth: duplex{nil, io.Discard}, pending: map[uint32]*fileChange{},
		may: func(string) bool { return true }}
	require.ErrorContains(t, f.requests(), "too long")
	require.LessOrEqual(t, len(f.pending), 3)

	f = &filter{pending: map[uint32]*fileChange{}}
	for id := range uint32(1000) { // of one that reads them they are forgotten
		require.NoError(t, f.await(id, &fileChange{size: 100_000}))
		f.answered(id, false, false)
	}
}

// TestAnswerWithoutRequest: berth's answer to fxInit has the version where others have an id. It hides no change.
func TestAnswerWithoutRequest(t *testing.T) {
	var recorded []string
	answers := append(request(fxVersion, 3, nil), request(fxStatus, 3, []byte{0, 0, 0, statusOK})...)
	f := &filter{pending: map[uint32]*fileChange{3: {event: "delete"}}, client: duplex{nil, io.Discard},
		berth: duplex{bytes.NewReader(answers), nil}, record: func(event string, _ any) { recorded = append(recorded, event) }}
	require.NoError(t, f.answers())
	require.Equal(t, []string{"delete"}, recorded)
}
