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
// and Finish of one role, v1.InstallConsole or v1.ServerConsole, are for one writer.
type Journal struct {
	dir   string
	size  int64
	files int

	writing sync.Mutex // held over the disk: only the two writers of the container wait for it
	named   bool       // the id is on the disk
	file    *os.File   // the newest segment, kept open: so what is printed is stored while no handle is left; nil: not open

	mu    sync.Mutex // never held over the disk
	id    string
	segs  []segment // by offset
	end   Position
	last  time.Time // of the last record, see v1.Line.At
	roles map[string]*role
}

// Position is a place in a journal: the offset behind a record, and the number of records that were
// written between Open and then.
type Position struct{ Offset, Line int64 }

// role is one of the two writers: the installer or the server.
type role struct {
	checkpoint checkpoint
	last       time.Time // the engine's, of the newest line of the container in checkpoint; zero: there is none
}

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
			if n++; r.Offset < w.checkpoint.From || n > lastRecords {
				break
			}
			w.see(r.Line)
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

// End returns the position behind the last record.
func (j *Journal) End() Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end
}

// Begin records the engine's id of the container that is read from now on, and returns where its
// reader resumes. If the id cannot be recorded, it returns both. Where the lines of a container begin
// is recorded as an offset: those of a machine whose clock is behind are older than those before them.
func (j *Journal) Begin(name, container string) (v1.Resume, error) {
	j.mu.Lock()
	w := j.roles[name]
	was, last := w.checkpoint, w.last
	now := checkpoint{Container: container, From: was.From}
	if was.Container != "" && was.Container != container { // without a checkpoint, the lines may be of this one
		now.From, w.last = j.end.Offset, time.Time{}
	}
	w.checkpoint = now
	resume := v1.Resume{Last: last, Container: was.Container, Complete: was.Complete, Fresh: w.last.IsZero()}
	j.mu.Unlock()
	if was == now {
		return resume, nil
	}
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return resume, err
	}
	return resume, now.write(j.checkpointPath(name))
}

// Release closes the file until the next Append.
func (j *Journal) Release() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.close()
}

// Finish is Release, and records that the journal has everything that the container printed.
func (j *Journal) Finish(name string) error {
	err := j.Release()
	j.mu.Lock()
	w := j.roles[name]
	w.checkpoint.Complete = true
	c := w.checkpoint
	j.mu.Unlock()
	return errors.Join(err, c.write(j.checkpointPath(name)))
}

// Append writes lines of at most v1.MaxLine bytes, and returns the position at which they begin. It
// keeps none of their bytes. After an error nothing was written: Begin resumes before them.
func (j *Journal) Append(name string, lines []v1.Line) (from Position, err error) {
	j.writing.Lock()
	defer j.writing.Unlock()
	var records []byte
	last := j.last
	for _, l := range lines { // their times rise strictly
		if !l.Time.After(last) {
			l.Shown = last.Add(1)
		}
		last = l.At()
		records = appendRecord(records, l)
	}
	if err := j.write(name, records); err != nil {
		return j.end, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	from = j.end
	j.end = Position{from.Offset + int64(len(records)), from.Line + int64(len(lines))}
	j.segs[len(j.segs)-1].end = j.end.Offset
	j.last = last
	j.roles[name].see(lines...)
	return from, nil
}

// newID returns the random id of a journal.
func newID() string {
	var id [6]byte
	_, _ = rand.Read(id[:]) // it never fails
	return hex.EncodeToString(id[:])
}
