package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	v1 "berth/api/v1"
)

// Directory holds the journals of all containers, those of one in <Path>/<id>/.
type Directory struct {
	Path     string
	FileSize int64 // bytes of a file, at which it is rotated
	Files    int   // files kept of a journal, the one being written included
}

// Journal is the lines of one console on disk. Begin, Write, Skip and Finish are
// for one writer; the other methods are for any goroutine.
type Journal struct {
	files files
	size  int64 // of a file, at which it is rotated

	mu         sync.Mutex // never held over the disk
	segs       []segment  // oldest first
	end        int64      // offset
	last       time.Time  // of the newest line
	checkpoint checkpoint

	file *os.File // the writer's own; nil: not open
}

// Open reads where the journal of a console ends. It changes nothing on the disk.
func (d Directory) Open(id, role string) (*Journal, error) {
	if err := checkName(id, role); err != nil {
		return nil, err
	}
	j := &Journal{files: files{dir: filepath.Join(d.Path, id), role: role, count: d.Files}, size: d.FileSize}
	if err := j.load(); err != nil {
		return nil, fmt.Errorf("console of container %s: %w", id, err)
	}
	return j, nil
}

// Remove removes the journals of a container. It is called after their
// writers have ended.
func (d Directory) Remove(id string) error {
	if err := checkName(id, v1.ServerConsole); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(d.Path, id))
}

// checkName refuses ids that are not the name of a directory.
func checkName(id, role string) error {
	if id == "" || id == "." || filepath.Base(id) != id || !filepath.IsLocal(id) {
		return fmt.Errorf("console of container %q: no such name", id)
	}
	if role != v1.InstallConsole && role != v1.ServerConsole {
		return fmt.Errorf("console of container %s: no role %q", id, role)
	}
	return nil
}

// lastRecords is how many records load reads to find the newest time: lines of
// stdout and stderr may be slightly out of order.
const lastRecords = 64

func (j *Journal) load() (err error) {
	if j.segs, err = j.files.load(); err != nil {
		return err
	}
	if len(j.segs) > 0 {
		j.end = j.segs[len(j.segs)-1].end
	}
	j.checkpoint = readCheckpoint(j.files.checkpointPath())
	var lines []v1.Line
	for r, err := range j.Backward(j.end) {
		if err != nil {
			return err
		}
		if lines = append(lines, r.Line); len(lines) == lastRecords {
			break
		}
	}
	j.last = newest(time.Time{}, lines)
	return nil
}

// newest returns the latest time of a container's lines.
func newest(last time.Time, lines []v1.Line) time.Time {
	for _, l := range lines {
		if !l.Message && l.Time.After(last) {
			last = l.Time
		}
	}
	return last
}

// End returns the offset behind the last record.
func (j *Journal) End() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end
}

// Last returns the time of the newest record, as Line.At, and 0 if there has been
// none. Times are Unix ns.
func (j *Journal) Last() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range slices.Backward(j.segs) {
		if !s.last.IsZero() {
			return s.last.UnixNano()
		}
	}
	return j.checkpoint.removed
}

// Oldest returns the offset of the oldest record that is kept, and the time of the
// last one that rotation has removed; 0: none was.
func (j *Journal) Oldest() (off, removed int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.segs) > 0 {
		off = j.segs[0].start
	}
	return off, j.checkpoint.removed
}

// Begin records the engine's id of the container that is read from now on, and
// returns where its reader resumes. If the id cannot be recorded, it returns both.
func (j *Journal) Begin(container string) (v1.Resume, error) {
	j.mu.Lock()
	was, last := j.checkpoint, j.last
	now := checkpoint{container: container, after: was.after, removed: was.removed}
	if was.container != "" && was.container != container { // without a checkpoint, the lines may be of this one
		now.after = unixNano(last)
	}
	j.checkpoint = now
	j.mu.Unlock()
	resume := v1.Resume{Last: last, Container: was.container, Complete: was.complete, Fresh: unixNano(last) <= now.after}
	if was == now {
		return resume, nil
	}
	if err := os.MkdirAll(j.files.dir, 0o700); err != nil {
		return resume, err
	}
	return resume, now.write(j.files.checkpointPath())
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// Finish closes the file. If complete, it records that the journal has everything
// that the container printed.
func (j *Journal) Finish(complete bool) error {
	var err error
	if j.file != nil {
		err = j.file.Close()
		j.file = nil
	}
	if !complete {
		return err
	}
	j.mu.Lock()
	j.checkpoint.complete = true
	c := j.checkpoint
	j.mu.Unlock()
	return errors.Join(err, c.write(j.files.checkpointPath()))
}

// Write appends records, which are those of lines, and returns the new end. After
// an error nothing was appended.
func (j *Journal) Write(records []byte, lines []v1.Line) (end int64, err error) {
	s, err := j.writable(int64(len(records)))
	if err != nil {
		return 0, err
	}
	if _, err := j.file.WriteAt(records, s.end-s.start); err != nil {
		// A part of the records is truncated when the file is opened again.
		err = errors.Join(err, j.file.Close())
		j.file = nil
		return 0, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.end += int64(len(records))
	s = j.segs[len(j.segs)-1]
	s.end = j.end
	if at, _, ok := parseHeader(lastRecord(records)); ok {
		s.last = at
	}
	j.segs[len(j.segs)-1] = s
	j.last = newest(j.last, lines)
	return j.end, nil
}

// lastRecord returns the last of some records, without its line feed.
func lastRecord(records []byte) []byte {
	records = bytes.TrimSuffix(records, []byte("\n"))
	return records[bytes.LastIndexByte(records, '\n')+1:]
}

// Skip records that lines are not written: Begin resumes behind them.
func (j *Journal) Skip(lines []v1.Line) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = newest(j.last, lines)
}
