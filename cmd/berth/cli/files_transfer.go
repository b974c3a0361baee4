package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"berth/api/client"
)

// transfer copies files between a volume and this host.
type transfer struct {
	cmd      *cobra.Command
	d        *daemon
	volume   string
	progress *progress

	files, links, failed int
	failure              error // of the last that failed
}

func newTransfer(cmd *cobra.Command, d *daemon, volume string, total int64) *transfer {
	return &transfer{cmd: cmd, d: d, volume: volume, progress: newProgress(cmd.ErrOrStderr(), total)}
}

func (t *transfer) ctx() context.Context { return t.cmd.Context() }

// retry repeats do while the daemon answers that too many file operations are in
// flight, after 0.5 s, doubling to 8 s.
func (t *transfer) retry(do func() error) error {
	for delay := 500 * time.Millisecond; ; delay *= 2 {
		err := do()
		if client.StatusOf(err) != http.StatusTooManyRequests || delay > 8*time.Second {
			return err
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-t.ctx().Done():
			timer.Stop()
			return t.ctx().Err()
		}
	}
}

// skip reports the error of one file, and returns nil if the others can be copied.
func (t *transfer) skip(err error) error {
	if err == nil || !skippable(err) {
		return err
	}
	t.failed++
	t.failure = err
	_, err = fmt.Fprintf(t.cmd.ErrOrStderr(), "berth: %v\n", err)
	return err
}

// report prints the result.
func (t *transfer) report(from, to string) error {
	t.progress.close()
	result := copied{from, to, t.files, t.progress.bytes.Load(), t.links, t.failed}
	if err := result.print(t.cmd); err != nil || t.failed == 0 {
		return err
	}
	return withCode(codeOf(t.failure), fmt.Errorf("not everything was copied: %d failed", t.failed))
}

// copied is the result of a transfer.
type copied struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	Links  int    `json:"links"`  // that were left out
	Failed int    `json:"failed"` // files and folders
}

func (c copied) print(cmd *cobra.Command) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return show(cmd, raw, nil, func(t *table) {
		text := fmt.Sprintf("copied %s to %s: %s, %s", c.From, c.To, count(c.Files, "file"), units.BytesSize(float64(c.Bytes)))
		if c.Links > 0 {
			text += fmt.Sprintf("; %s left out", count(c.Links, "link"))
		}
		t.line(text)
	})
}

// count returns a number of things, such as "1 file" or "2 files".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
