package archive

import (
	"bytes"
	"errors"
	"io"
	"runtime"

	"github.com/dsnet/compress/bzip2"
)

// bzip2Block is how many bytes one bzip2 stream compresses: the block size of the
// best level, beyond which the format finds no repetitions.
const bzip2Block = 900_000

// bzip2Writer compresses blocks on all cores and writes them as consecutive
// streams, which readers of the format concatenate. It holds one block per core.
type bzip2Writer struct {
	w    io.Writer
	buf  []byte
	line chan chan block // the blocks in flight, in order
	done chan error      // result of the writing goroutine
}

type block struct {
	data []byte
	err  error
}

func newBzip2(w io.Writer) *bzip2Writer {
	b := &bzip2Writer{w: w, line: make(chan chan block, runtime.GOMAXPROCS(0)), done: make(chan error, 1)}
	go func() { b.done <- b.writeOut() }()
	return b
}

// writeOut writes the blocks in order. After an error it still receives them all.
func (b *bzip2Writer) writeOut() (err error) {
	for out := range b.line {
		r := <-out
		if err == nil {
			err = r.err
		}
		if err == nil {
			_, err = b.w.Write(r.data)
		}
	}
	return err
}

func (b *bzip2Writer) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if b.buf == nil {
			b.buf = make([]byte, 0, bzip2Block)
		}
		k := min(len(p), bzip2Block-len(b.buf))
		b.buf = append(b.buf, p[:k]...)
		p = p[k:]
		if len(b.buf) == bzip2Block {
			b.send()
		}
	}
	return n, nil
}

// send starts to compress the buffered block.
func (b *bzip2Writer) send() {
	out, data := make(chan block, 1), b.buf
	b.buf = nil
	b.line <- out
	go func() { out <- compressBlock(data) }()
}

func compressBlock(data []byte) block {
	var out bytes.Buffer
	z, err := bzip2.NewWriter(&out, &bzip2.WriterConfig{Level: bzip2.BestCompression})
	if err != nil {
		return block{err: err}
	}
	_, err = z.Write(data)
	err = errors.Join(err, z.Close())
	return block{data: out.Bytes(), err: err}
}

// Close compresses the rest and waits until everything is written.
func (b *bzip2Writer) Close() error {
	if len(b.buf) > 0 {
		b.send()
	}
	close(b.line)
	return <-b.done
}
