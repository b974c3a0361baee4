package sftp

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"testing"

	client "github.com/pkg/sftp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/auth"
)

// BenchmarkMeter transfers files as clients do that send their requests far ahead.
func BenchmarkMeter(b *testing.B) {
	for _, one := range []struct {
		name string
		run  func(h *harness)
	}{
		{"requests as long as a packet", uploadPackets},
		{"all requests at once", downloadAtOnce},
		{"up and down at once", transferBothWays},
	} {
		b.Run(one.name, func(b *testing.B) {
			h := newHarness(b)
			b.SetBytes(benchSize)
			for b.Loop() {
				one.run(h)
			}
		})
	}
}

const benchSize = 200 << 20 // bytes

// uploadPackets has eight requests in flight, each as long as a packet of package ssh.
func uploadPackets(h *harness) {
	_, in, out := h.raw(h.mint(auth.Grant{}))
	answers := packets(out)
	_, err := in.Write(slices.Concat(initPacket, packet(typeOpen, uint32(1), "up", uint32(flagWrite|flagCreate), uint32(0))))
	require.NoError(h.t, err)
	const length, inFlight = 32 << 10, 8
	write := packet(typeWrite, uint32(1), "1", uint64(0), string(make([]byte, length-26)))
	require.Len(h.t, write, length)
	free := make(chan struct{}, inFlight)
	done := make(chan struct{})
	go func() {
		defer close(done)
		count := -2 // the first answers are to the two requests before
		for range answers {
			if count++; count > 0 {
				<-free
			}
			if count == benchSize/length {
				return
			}
		}
	}()
	for range benchSize / length {
		free <- struct{}{}
		_, err = in.Write(write)
		require.NoError(h.t, err)
	}
	<-done
}

// downloadAtOnce sends all requests before it reads an answer.
func downloadAtOnce(h *harness) {
	const length = 32 << 10
	h.write("down", string(make([]byte, length)))
	_, in, out := h.raw(h.mint(auth.Grant{}))
	read := packet(typeRead, uint32(1), "1", uint64(0), uint32(length))
	var sent sync.WaitGroup
	defer sent.Wait()
	sent.Go(func() {
		_, err := in.Write(slices.Concat(initPacket, packet(typeOpen, uint32(1), "down", uint32(flagRead), uint32(0)), bytes.Repeat(read, benchSize/length)))
		assert.NoError(h.t, err)
	})
	total := 0
	for got := range packets(out) {
		if got[0] == 103 {
			total += len(got) - 9
		}
		if total == benchSize {
			return
		}
	}
	require.Equal(h.t, benchSize, total)
}

// transferBothWays uploads and downloads half of the bytes each.
func transferBothWays(h *harness) {
	h.write("down", string(make([]byte, benchSize/2)))
	conn, err := h.dial(h.volume, ssh.Password(h.mint(auth.Grant{})))
	require.NoError(h.t, err)
	defer conn.Close()
	c, err := client.NewClient(conn, client.UseConcurrentWrites(true))
	require.NoError(h.t, err)
	var all sync.WaitGroup
	all.Go(func() {
		f, err := c.Create("up")
		if assert.NoError(h.t, err) {
			_, err = f.ReadFrom(bytes.NewReader(make([]byte, benchSize/2)))
			assert.NoError(h.t, err)
		}
	})
	f, err := c.Open("down")
	require.NoError(h.t, err)
	_, err = f.WriteTo(io.Discard)
	require.NoError(h.t, err)
	all.Wait()
}
