package archiver

import (
	"encoding/json"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"berth/runtime/volume"
)

const (
	pipeBytes   = 1 << 20   // of the archive, that wait in the kernel
	copyBytes   = 256 << 10 // of the archive, that are copied at once
	stderrBytes = 4 << 10   // of the process's own messages, that are kept

	// windowBytes is how far the process may be ahead of what it was allowed to write. Its
	// last write before it waits may exceed that.
	windowBytes = 4 << 20
	aheadBytes  = windowBytes + 2<<20 // no report has more
)

// errReport ends a process that reports what it cannot have written.
var errReport = errors.New("the process that writes the archive reports a wrong size")

// process is a process that writes an archive.
type process struct {
	target                   io.Writer
	input, messages, archive *os.File // archive is nil if the process writes to target itself
	copied                   int64    // from archive to target
	stderr                   head
	ended                    chan struct{} // closed when the process has ended
	exit                     error         // the result of Wait, when it has
}

// failed reports whether the process has ended without a result.
func (p *process) failed() bool {
	select {
	case <-p.ended:
		return p.exit != nil
	default:
		return false
	}
}

// ends are the other ends of the pipes of a process.
type ends struct{ input, messages, archive *os.File }

// open opens the pipes. The caller closes them and the ends, also after an error.
func (p *process) open() (e ends, err error) {
	if e.input, p.input, err = os.Pipe(); err != nil {
		return e, err
	}
	if p.messages, e.messages, err = os.Pipe(); err != nil {
		return e, err
	}
	if _, is := p.target.(*os.File); is {
		return e, nil
	}
	if p.archive, e.archive, err = os.Pipe(); err != nil {
		return e, err
	}
	_, _ = unix.FcntlInt(p.archive.Fd(), unix.F_SETPIPE_SZ, pipeBytes) // the default works as well
	return e, nil
}

// output returns the standard output of the process.
func (p *process) output(e ends) *os.File {
	if e.archive != nil {
		return e.archive
	}
	f, _ := p.target.(*os.File)
	return f
}

func (e ends) close()     { closeAll(e.input, e.messages, e.archive) }
func (p *process) close() { closeAll(p.input, p.messages, p.archive) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close() // nil as well
	}
}

// copy copies the archive to the target, unless the process writes to it.
func (p *process) copy() (err error) {
	if p.archive != nil {
		p.copied, err = io.CopyBuffer(struct{ io.Writer }{p.target}, struct{ io.Reader }{p.archive}, make([]byte, copyBytes))
	}
	return err
}

// size returns how many bytes the target has received.
func (p *process) size() (int64, error) {
	f, is := p.target.(*os.File)
	if !is {
		return p.copied, nil
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// follow sends the job, and calls watch for each message. After the error of watch, which
// ends the process, it ends at once; otherwise it returns the last message.
func (p *process) follow(job volume.ArchiveJob, watch volume.ArchiveWatch, kill func(error)) (last message) {
	out, in := json.NewEncoder(p.input), json.NewDecoder(p.messages)
	_ = out.Encode(job) // a process that cannot read its job sends no result
	for {
		var m message
		if err := in.Decode(&m); err != nil {
			return last
		}
		if watch.Progress != nil {
			watch.Progress(m.Read)
		}
		n := m.Written - last.Written
		if !p.failed() { // nothing need wait for the bandwidth any more
			if err := account(n, watch); err != nil {
				kill(err)
				return message{}
			}
		}
		if last = m; n > 0 { // other answers would fill the pipe, for nobody reads them
			_ = out.Encode(m.Written)
		}
	}
}

// account calls watch with n bytes that a process reports.
func account(n int64, watch volume.ArchiveWatch) error {
	switch {
	case n < 0 || n > aheadBytes:
		return errReport
	case n == 0 || watch.Written == nil:
		return nil
	}
	return watch.Written(n)
}

// head keeps the beginning of what is written to it.
type head struct{ kept []byte }

// Write implements io.Writer. It drops what is too much.
func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), stderrBytes-len(h.kept))]...)
	return len(p), nil
}
