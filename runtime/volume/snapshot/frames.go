package snapshot

import (
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// frameBytes is how much of the tar one frame holds. It bounds the memory of both
// sides, and larger frames compress hardly better at this level.
const frameBytes = 512 << 10

// maxWorkers bounds the goroutines that compress one archive.
const maxWorkers = 4

// frameCount is how many frames there are at once: more than workers, so that none waits
// while the disk, the output or the reader is slow. With its output a frame takes 1 MiB.
const frameCount = 2 * maxWorkers

// frames compresses a stream as independent zstd frames, several at a time. It is not
// safe for concurrent use.
type frames struct {
	out   io.Writer
	free  chan *frame
	work  chan *frame
	order chan *frame // in the order of the stream
	cur   *frame      // not full; nil after Close
	ended sync.WaitGroup

	mu  sync.Mutex
	err error // of out
}

// frame is one frame of the archive and its content.
type frame struct {
	in, out []byte
	done    chan struct{} // receives a value when out is complete
}

// newFrames returns a stream that writes its frames to out. Close must be called.
func newFrames(out io.Writer) (*frames, error) {
	workers := min(runtime.GOMAXPROCS(0), maxWorkers)
	f := &frames{out: out, free: make(chan *frame, frameCount), work: make(chan *frame, frameCount), order: make(chan *frame, frameCount)}
	var encoders []*zstd.Encoder
	for range workers {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(frameBytes))
		if err != nil {
			return nil, err
		}
		encoders = append(encoders, z)
	}
	for range frameCount {
		f.free <- &frame{in: make([]byte, 0, frameBytes), done: make(chan struct{}, 1)}
	}
	f.cur = <-f.free
	for _, z := range encoders {
		f.ended.Go(func() { f.compress(z) })
	}
	f.ended.Go(f.write)
	return f, nil
}

func (f *frames) compress(z *zstd.Encoder) {
	for b := range f.work {
		b.out = z.EncodeAll(b.in, b.out[:0])
		b.done <- struct{}{}
	}
}

// write writes the frames in order. After an error it drops the rest.
func (f *frames) write() {
	for b := range f.order {
		<-b.done
		if f.failed() == nil {
			if _, err := f.out.Write(b.out); err != nil {
				f.mu.Lock()
				f.err = err
				f.mu.Unlock()
			}
		}
		b.in = b.in[:0]
		f.free <- b
	}
}

// failed returns the error of out.
func (f *frames) failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// buffer returns at least one free byte of the stream. commit appends what the caller
// wrote there.
func (f *frames) buffer() []byte { return f.cur.in[len(f.cur.in):cap(f.cur.in)] }

// commit appends n bytes of buffer to the stream.
func (f *frames) commit(n int) error {
	f.cur.in = f.cur.in[:len(f.cur.in)+n]
	if len(f.cur.in) < cap(f.cur.in) {
		return nil
	}
	return f.flush()
}

// flush ends the current frame and waits for a free one.
func (f *frames) flush() error {
	f.order <- f.cur
	f.work <- f.cur
	f.cur = <-f.free
	return f.failed()
}

// Write appends p to the stream.
func (f *frames) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		k := copy(f.buffer(), p[n:])
		n += k
		err = f.commit(k)
	}
	return n, err
}

// Close writes the last frame, ends all goroutines and returns the error of out.
func (f *frames) Close() error {
	if len(f.cur.in) > 0 {
		f.order <- f.cur
		f.work <- f.cur
	}
	f.cur = nil
	close(f.work)
	close(f.order)
	f.ended.Wait()
	return f.failed()
}
