package sftp

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Requests on handle 1.
var (
	writeRequest = packet(typeWrite, uint32(1), "1", uint64(0), "text")
	readRequest  = packet(typeRead, uint32(1), "1", uint64(0), uint32(5))
	setRequest   = packet(10, uint32(1), "1", uint32(0))
	closeRequest = packet(typeClose, uint32(1), "1")
	status       = packet(101, uint32(1), uint32(0))
)

// TestOrderOfRequests requires that a request which is no read or write of content waits for those
// before it, and those for it; that several of its kind do not wait; and a close for nothing.
func TestOrderOfRequests(t *testing.T) {
	appending := packet(typeOpen, uint32(1), "f", uint32(flagAppend), uint32(0))
	for name, c := range map[string]struct {
		requests [][]byte
		passed   []int // after so many answers
	}{
		"content, another, content":   {[][]byte{writeRequest, readRequest, setRequest, writeRequest}, []int{2, 2, 3, 4}},
		"several that are no content": {[][]byte{setRequest, setRequest, closeRequest}, []int{3}},
		"close after content":         {[][]byte{writeRequest, closeRequest, setRequest, setRequest, readRequest}, []int{2, 4, 4, 4, 5}},
		"appended content":            {[][]byte{appending, writeRequest, writeRequest, closeRequest, setRequest}, []int{1, 2, 4, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := blocked{bytes.NewReader(slices.Concat(c.requests...)), make(chan struct{})}
				close(b.release)
				g := newGuard(b, func() {})
				passed := 0
				go func() {
					for range packets(g) {
						passed++
					}
				}()
				for answers, want := range c.passed {
					synctest.Wait()
					require.Equal(t, want, passed, "after %d answers", answers)
					_, err := g.Write(status)
					require.NoError(t, err)
				}
				require.NoError(t, g.Close())
			})
		})
	}
}

// TestAnswersToRequestsThatCameTogether: the client is woken once for requests that it has sent
// together, such as a write, a change of the attributes and a close.
func TestAnswersToRequestsThatCameTogether(t *testing.T) {
	for name, c := range map[string]struct {
		requests []byte
		want     []int // answers of each Write
	}{
		"together":        {slices.Concat(writeRequest, setRequest, closeRequest), []int{3}},
		"content after":   {slices.Concat(setRequest, readRequest), []int{2}},
		"content":         {slices.Concat(writeRequest, readRequest, readRequest), []int{3}},
		"the last is cut": {slices.Concat(writeRequest, setRequest, closeRequest[:7]), []int{2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var written [][]byte
				in, out := io.Pipe()
				g := newGuard(recorder{in, &written}, func() {})
				answer := make(chan int, 10)
				go func() {
					defer close(answer)
					for range packets(g) {
						answer <- 1
					}
				}()
				go func() { _, _ = out.Write(c.requests) }()
				synctest.Wait()
				answers := 0
				for more := true; more; synctest.Wait() {
					select {
					case <-answer:
						_, err := g.Write(status)
						assert.NoError(t, err)
						answers++
					default:
						more = false
					}
				}
				var got []int
				for _, w := range written {
					got = append(got, len(w)/len(status))
				}
				require.Equal(t, c.want, got)
				require.NoError(t, in.Close())
			})
		})
	}
}

// passAll returns a guard that has passed on the requests, and records what it writes.
func passAll(requests []byte, written *[][]byte) *guard {
	g := newGuard(recorder{bytes.NewReader(requests), written}, func() {})
	go func() {
		for range packets(g) {
		}
	}()
	synctest.Wait()
	return g
}

// TestJoinedAnswersAreBounded: of the answers to requests that came together, as many are written at
// once as fit, each of them whole.
func TestJoinedAnswersAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		size int   // of the content of each answer
		want []int // answers of each Write
	}{
		"usual reads":     {readCost, []int{4, 1}},
		"larger ones":     {maxJoined * 5 / 8, []int{1, 1, 1, 1, 1}},
		"the largest one": {maxJoined - 13, []int{1, 1, 1, 1, 1}},
		"too large":       {maxJoined + 1, nil}, // in two parts each
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var written [][]byte
				g := passAll(bytes.Repeat(readRequest, 5), &written)
				answer := packet(103, uint32(1), string(make([]byte, c.size)))
				for range 5 {
					for _, part := range [][]byte{answer[:13], answer[13:]} { // as pkg/sftp writes it
						n, err := g.Write(part)
						require.NoError(t, err)
						require.Len(t, part, n)
						require.LessOrEqual(t, len(g.out), maxJoined)
					}
				}
				require.Equal(t, bytes.Repeat(answer, 5), slices.Concat(written...))
				for i, answers := range c.want {
					require.Len(t, written[i], answers*len(answer))
				}
			})
		})
	}
}

// TestAnswersAfterTheEnd: pkg/sftp may write answers when it has returned, and nothing follows.
func TestAnswersAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written [][]byte
		g := passAll(bytes.Repeat(writeRequest, 2), &written)
		g.finish()
		_, err := g.Write(status)
		require.NoError(t, err)
		require.Equal(t, [][]byte{status}, written)
	})
}

// TestAnswersBeforeMalformedRequest: what was carried out is answered, although pkg/sftp ends the
// channel at the request behind it.
func TestAnswersBeforeMalformedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written [][]byte
		g := passAll(slices.Concat(setRequest, packet(11)), &written)
		_, err := g.Write(status)
		require.NoError(t, err)
		require.Empty(t, written)
		require.NoError(t, g.Close())
		require.Equal(t, [][]byte{status}, written)
	})
}

// recorder is a channel that keeps what each Write was given.
type recorder struct {
	io.Reader
	written *[][]byte
}

func (r recorder) Write(p []byte) (int, error) {
	*r.written = append(*r.written, bytes.Clone(p))
	return len(p), nil
}

func (recorder) Close() error { return nil }
