package journal

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "berth/api/v1"
)

// Directory holds the journals of all containers, that of one in <Path>/<id>/.
type Directory struct {
	Path     string
	FileSize int64 // bytes of a segment, at which the next one begins
	Files    int   // segments of that size that are kept of a role, the one being written included
}

// Journal is the console of one container on disk. Its methods are for any goroutine; Begin, Append
// and Finish of one role are for one writer.
type Journal struct {
	dir   string
	size  int64
	files int

	writing sync.Mutex // held over the disk: only the two writers of the container wait for it
	named   bool       // the id is on the disk
	buf     []byte

	mu    sync.Mutex // never held over the disk
	id    string
	segs  []segment // by offset
	end   Position
	last  time.Time // of the last record, see v1.Line.At
	roles map[string]*role
	file  *os.File // the newest segment; nil: not open
}

// Position is a place in a journal: the offset behind a record, and the number of records that were
// written between Open and then.
type Position struct{ Offset, Line int64 }

// role is one of the two writers: the installer or the server.
type role struct {
	checkpoint checkpoint
	last       time.Time // the engine's, of its newest line that was written or lost
	lost       gap       // its writer's own
}

// gap is lines that could not be written. A message takes their place in the journal once it can be
// written again.
type gap struct{ from, to time.Time }

// Open reads where the journal of a container ends. It changes nothing on the disk.
func (d Directory) Open(container string) (*Journal, error) {
	if err := checkName(container); err != nil {
		return nil, err
	}
	j := &Journal{dir: filepath.Join(d.Path, container), size: d.FileSize, files: d.Files,
		roles: map[string]*role{v1.InstallConsole: {}, v1.ServerConsole: {}}}
	if err := j.load(); err != nil {
		return nil, fmt.Errorf("console of container %s: %w", container, err)
	}
	return j, nil
}

// Remove removes the journal of a container. It is called after its writers have ended.
func (d Directory) Remove(container string) error {
	if err := checkName(container); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(d.Path, container))
}

// checkName refuses ids that are not the name of a directory.
func checkName(container string) error {
	if container == "" || container == "." || filepath.Base(container) != container || !filepath.IsLocal(container) {
		return fmt.Errorf("console of container %q: no such name", container)
	}
	return nil
}

// lastRecords is how many records load reads to find the newest time: lines of stdout and stderr may
// be slightly out of order.
const lastRecords = 64

func (j *Journal) load() (err error) {
	if j.id, j.named = readID(j.dir); !j.named {
		j.id = newID()
	}
	if j.segs, err = loadSegments(j.dir); err != nil {
		return err
	}
	if n := len(j.segs); n > 0 {
		newest := &j.segs[n-1]
		end := newest.start
		for r, err := range j.Backward("", newest.end) {
			if err != nil {
				return err
			}
			end, j.last = max(end, r.End), r.Line.At()
			break
		}
		newest.end, j.end.Offset = end, end
	}
	for name, w := range j.roles {
		w.checkpoint = readCheckpoint(j.checkpointPath(name))
		n := 0
		for r, err := range j.Backward(name, j.end.Offset) {
			if err != nil {
				return err
			}
			w.see(r.Line)
			if n++; n == lastRecords {
				break
			}
		}
	}
	return nil
}

// see makes last the latest time of the role's lines.
func (w *role) see(lines ...v1.Line) {
	for _, l := range lines {
		if !l.Message && l.Time.After(w.last) {
			w.last = l.Time
		}
	}
}

func (j *Journal) role(name string) (*role, error) {
	if w := j.roles[name]; w != nil {
		return w, nil
	}
	return nil, fmt.Errorf("console in %s: no role %q", j.dir, name)
}

// End returns the position behind the last record.
func (j *Journal) End() Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end
}

// Begin records the engine's id of the container that is read from now on, and returns where its
// reader resumes. If the id cannot be recorded, it returns both.
func (j *Journal) Begin(name, container string) (v1.Resume, error) {
	w, err := j.role(name)
	if err != nil {
		return v1.Resume{}, err
	}
	j.mu.Lock()
	was, last := w.checkpoint, w.last
	now := checkpoint{container: container, after: was.after}
	if was.container != "" && was.container != container { // without a checkpoint, the lines may be of this one
		now.after = unixNano(last)
	}
	w.checkpoint = now
	j.mu.Unlock()
	resume := v1.Resume{Last: last, Container: was.container, Complete: was.complete, Fresh: unixNano(last) <= now.after}
	if was == now {
		return resume, nil
	}
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return resume, err
	}
	return resume, now.write(j.checkpointPath(name))
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// Finish closes the file until the next Append. If complete, it records that the journal has
// everything that the container printed.
func (j *Journal) Finish(name string, complete bool) error {
	w, err := j.role(name)
	if err != nil {
		return err
	}
	j.writing.Lock()
	err = j.closeFile()
	j.buf = nil
	j.writing.Unlock()
	if !complete {
		return err
	}
	j.mu.Lock()
	w.checkpoint.complete = true
	c := w.checkpoint
	j.mu.Unlock()
	return errors.Join(err, c.write(j.checkpointPath(name)))
}

// Append writes lines and returns the position at which they begin. It keeps none of their bytes. After
// an error nothing was written: Begin resumes behind the lines, and a message takes their place.
func (j *Journal) Append(name string, lines []v1.Line) (from Position, err error) {
	w, err := j.role(name)
	if err != nil {
		return from, err
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	if from, err = j.append(name, w.lost, lines); err == nil {
		w.lost = gap{}
	} else {
		w.lost.add(lines)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	w.see(lines...)
	return from, err
}

// append writes a message about lost lines, and lines.
func (j *Journal) append(name string, lost gap, lines []v1.Line) (from Position, err error) {
	b := builder{records: j.buf[:0], last: j.last}
	if lost != (gap{}) {
		b.add(lost.message())
	}
	for _, l := range lines {
		split(l, b.add)
	}
	if j.buf = b.records; cap(j.buf) > keepBuffer {
		j.buf = nil // memory for a flood is not kept
	}
	s, err := j.writable(name, int64(len(b.records)))
	if err != nil {
		return j.end, err
	}
	if _, err := j.file.WriteAt(b.records, s.end-s.start); err != nil {
		// A part of the records is truncated when the file is opened again.
		return j.end, errors.Join(err, j.closeFile())
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	from = j.end
	j.end = Position{from.Offset + int64(len(b.records)), from.Line + b.lines}
	j.segs[len(j.segs)-1].end = j.end.Offset
	j.last = b.last
	return from, nil
}

// keepBuffer is the memory that a journal keeps when little is printed, in bytes.
const keepBuffer = 16 << 10

func (g *gap) add(lines []v1.Line) {
	if len(lines) == 0 {
		return
	}
	if g.from.IsZero() {
		g.from = lines[0].Time
	}
	g.to = lines[len(lines)-1].Time
}

func (g gap) message() v1.Line {
	text := fmt.Sprintf("console output between %s and %s is missing: it could not be written",
		g.from.UTC().Format(time.RFC3339), g.to.UTC().Format(time.RFC3339))
	return v1.Line{Time: g.to, Data: []byte(text), Message: true}
}

// builder makes the records of lines. Their times rise strictly.
type builder struct {
	records []byte
	lines   int64
	last    time.Time
}

func (b *builder) add(l v1.Line) {
	if !l.Time.After(b.last) {
		l.Shown = b.last.Add(1)
	}
	b.last = l.At()
	b.records = appendRecord(b.records, l)
	b.lines++
}

// newID returns the random id of a journal.
func newID() string {
	var id [6]byte
	_, _ = rand.Read(id[:]) // it never fails
	return hex.EncodeToString(id[:])
}
