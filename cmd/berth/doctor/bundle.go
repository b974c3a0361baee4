package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"berth/api/client"
)

// The bounds of a bundle.
const (
	bundleEvents = 1000    // newest transitions
	bundleLog    = 1 << 20 // bytes of the end of the log
	bundleFile   = 8 << 20 // bytes of any of its files
	bundleTime   = time.Minute
)

// Bundle writes a tar.gz for a bug report: the report, the configuration, the versions,
// what the engine says about itself, the end of the log, and of a running daemon its
// metrics, readiness and newest transitions. Secrets are replaced by ***: those of the
// configuration, the values of containers' variables, and everything with the form of a
// token. logFile is the daemon's log; if it is empty, systemd's journal is read.
func Bundle(ctx context.Context, out io.Writer, o Options, r Report, logFile string) error {
	ctx, cancel := context.WithTimeout(ctx, bundleTime)
	defer cancel()
	e := newExamination(ctx, o)
	secrets, err := e.secrets(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the variables of containers, whose values a bundle must not show: %w", err)
	}
	compressed := gzip.NewWriter(out)
	b := &bundle{tar: tar.NewWriter(compressed), hide: newRedactor(secrets), now: time.Now()}
	b.json("doctor.json", r)
	b.json("config.json", e.shownConfig())
	b.text("version.txt", fmt.Appendf(nil, "berth %s\n%s %s/%s\n", o.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH))
	if info, err := e.engine(); err == nil {
		b.json("engine.json", info)
	}
	b.text("log.txt", logTail(ctx, logFile))
	if s := e.daemon(); s.answers {
		b.text("readyz.txt", fmt.Append(nil, s.err))
		b.text("metrics.txt", s.metrics)
		events, err := newestEvents(ctx, o.Daemon)
		if err != nil {
			b.text("events.json", []byte(err.Error()))
		} else {
			b.json("events.json", events)
		}
	}
	return errors.Join(b.err, b.tar.Close(), compressed.Close())
}

// bundle is an archive without secrets. Its first error ends it.
type bundle struct {
	tar  *tar.Writer
	hide redactor
	now  time.Time
	err  error
}

func (b *bundle) json(name string, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		text = []byte(err.Error())
	}
	b.text(name, text)
}

func (b *bundle) text(name string, text []byte) {
	if b.err != nil || len(text) == 0 {
		return
	}
	text = b.hide.redact(text)
	text = text[:min(len(text), bundleFile)]
	header := &tar.Header{Name: "berth-doctor/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: b.now}
	if b.err = b.tar.WriteHeader(header); b.err == nil {
		_, b.err = b.tar.Write(text)
	}
}

// newestEvents returns the newest stored transitions.
func newestEvents(ctx context.Context, c *client.Client) (client.EventList, error) {
	after, err := c.Events().Newest(ctx)
	if err != nil {
		return client.EventList{}, err
	}
	after.Seq -= min(after.Seq, bundleEvents)
	return c.Events().List(ctx, after, bundleEvents, client.EventFilter{})
}

// logTail returns the end of the daemon's log, or why it cannot be read.
func logTail(ctx context.Context, file string) []byte {
	if file == "" {
		return journal(ctx)
	}
	f, err := os.Open(file)
	if err != nil {
		return []byte(err.Error())
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return []byte(file + " is not a regular file")
	} else if st.Size() > bundleLog {
		_, err = f.Seek(-bundleLog, io.SeekEnd)
		if err != nil {
			return []byte(err.Error())
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, bundleLog))
	if err != nil {
		return []byte(err.Error())
	}
	if _, whole, cut := bytes.Cut(text, []byte{'\n'}); cut && len(text) == bundleLog {
		text = whole // a secret at the cut would not be recognised
	}
	return text
}

// journal returns the newest lines of berth's unit in systemd's journal.
func journal(ctx context.Context) []byte {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "journalctl", "--unit=berth.service", "--no-pager", "--output=short-iso", "--lines="+strconv.Itoa(bundleLog/200))
	cmd.WaitDelay = time.Second
	text, err := cmd.Output()
	if err != nil {
		return []byte("journalctl: " + err.Error() + "; name the daemon's log with --log")
	}
	return text
}
