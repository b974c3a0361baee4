package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/docker/go-units"
)

const (
	progressInterval = 200 * time.Millisecond
	progressName     = 24 // characters of the file's name
	progressBar      = 20 // characters
)

// progress counts what a transfer has copied, and shows it on a terminal.
type progress struct {
	total atomic.Int64 // bytes; -1: unknown
	began time.Time
	bytes atomic.Int64
	name  atomic.Pointer[string] // of the current file

	close func() // ends the display
}

// newProgress begins to show a transfer of total bytes if out is a terminal.
func newProgress(out io.Writer, total int64) *progress {
	p := &progress{began: time.Now(), close: func() {}}
	p.total.Store(total)
	if t, is := out.(*terminal); is {
		p.display(t.out)
	}
	return p
}

// display draws the line of p on out until close is called.
func (p *progress) display(out io.Writer) {
	stop := make(chan struct{})
	var drawn sync.WaitGroup
	drawn.Go(func() {
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				_, _ = io.WriteString(out, "\r"+p.line(now)+"\x1b[K")
			case <-stop:
				_, _ = io.WriteString(out, "\r\x1b[K")
				return
			}
		}
	})
	p.close = sync.OnceFunc(func() {
		close(stop)
		drawn.Wait()
	})
}

// file begins the next file and returns its content with a count of its bytes.
func (p *progress) file(name string, content io.Reader) io.Reader {
	p.name.Store(&name)
	return io.TeeReader(content, (*counter)(p))
}

// counter counts what is written to it.
type counter progress

// Write counts p.
func (c *counter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}

// line returns the state at a time, in at most 79 characters.
func (p *progress) line(now time.Time) string {
	done, total, name := p.bytes.Load(), p.total.Load(), ""
	if current := p.name.Load(); current != nil {
		name = shorten(*current, progressName)
	}
	rate := float64(done) / max(now.Sub(p.began).Seconds(), 0.001)
	text := fmt.Sprintf("%-*s %9s", progressName, name, units.BytesSize(float64(done)))
	speed := fmt.Sprintf(" %9s/s", units.BytesSize(rate))
	if total < 0 {
		return text + speed
	}
	part := min(1, float64(done)/float64(cmp.Or(total, 1)))
	left := "-"
	if rate > 0 {
		left = age(now, now.Add(time.Duration(float64(max(0, total-done))/rate*float64(time.Second))))
	}
	full := int(part * progressBar)
	bar := strings.Repeat("=", full) + strings.Repeat(" ", progressBar-full)
	return fmt.Sprintf("%s [%s] %3.0f%%%s %s", text, bar, part*100, speed, left)
}

// shorten returns the end of a name in at most n characters, all of them printable.
func shorten(name string, n int) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, name)
	if over := utf8.RuneCountInString(name) - n; over > 0 {
		return "…" + string([]rune(name)[over+1:])
	}
	return name
}
