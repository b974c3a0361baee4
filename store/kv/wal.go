package kv

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// wal is the write-ahead log of an open batch: Badger takes several changes of goroutine for a
// commit, and the log a copy into a file that is mapped into memory, as Badger's own is. Each
// record has the version of Badger that the batch reads. So records of an earlier batch, which
// Badger has, or of a later one than a power cut has left, are recognised.
type wal struct {
	f    *os.File
	mem  []byte // the content of f
	end  int    // of the records of the open batch
	line []byte // memory of append

	appended, synced atomic.Uint64 // number of records, ever, and of those that are on the disk or in Badger
}

const (
	walName = "WAL"
	walSize = 1 << 20   // bytes: some 2,500 entries of the audit log
	walHead = 4 + 4 + 8 // bytes of a record before its writes: their length, a checksum of the rest, the version
)

// startLog commits the records of the last process, and returns an empty log.
func startLog(db *DB) (*wal, error) {
	f, err := os.OpenFile(filepath.Join(db.disk.dir, walName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	w := &wal{f: f}
	err = w.replay(db, db.badger)
	if err == nil {
		err = w.prepare()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}

// prepare empties the file, and maps it.
func (w *wal) prepare() error {
	_, err := w.f.WriteAt(make([]byte, walSize), 0) // its blocks exist: on most file systems the disk may be full later
	if err == nil {                                 // so that no power cut brings back the records of a version that comes again
		err = w.f.Sync()
	}
	if err == nil {
		w.mem, err = unix.Mmap(int(w.f.Fd()), 0, walSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	return err
}

// replay commits the records that b, the Badger of db, does not have.
func (w *wal) replay(db *DB, b *versioned) error {
	if w == nil {
		return nil
	}
	writes, err := w.read(b.committed)
	if err != nil || len(writes) == 0 {
		return err
	}
	need, err := measure(writes)
	if err == nil {
		err = db.disk.allocateFor(need)
	}
	if err != nil {
		return err
	}
	t := newTxn(b, true)
	defer t.discard()
	if err := write(t.txn, writes); err != nil {
		return err
	}
	if err = db.attempt(b, t, true); err == nil {
		w.reset()
	}
	return err
}

// append writes a record. It returns false if the batch has to be committed instead.
func (w *wal) append(version uint64, writes []map[string][]byte) bool {
	if w == nil {
		return false
	}
	r := append(w.line[:0], make([]byte, walHead)...)
	for _, m := range writes {
		for key, value := range m {
			r = appendBytes(r, []byte(key))
			if value == nil {
				r = append(r, 0)
			} else {
				r = appendBytes(append(r, 1), value)
			}
		}
	}
	w.line = r[:0]
	binary.BigEndian.PutUint32(r, uint32(len(r)-walHead))
	binary.BigEndian.PutUint64(r[8:], version)
	binary.BigEndian.PutUint32(r[4:], crc32.Checksum(r[8:], castagnoli))
	if !w.write(r, w.end) {
		return false
	}
	w.end += len(r)
	w.appended.Add(1)
	return true
}

// write copies b into the log. It returns false if the log is too small, if the file has no space
// any more, as on a file system that never writes in place, or if it cannot be read: the kernel
// reports these as faults of the memory.
func (w *wal) write(b []byte, at int) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { ok = recover() == nil && ok }()
	return copy(w.mem[at:], b) == len(b)
}

// SyncLog flushes the log to the disk; the writer may go on meanwhile. It returns false if there
// is nothing new, or if it fails: then only Commit is durable.
func (db *DB) SyncLog() bool {
	w := db.wal
	if w == nil {
		return false
	}
	n := w.appended.Load()
	if n == w.synced.Load() || w.sync() != nil {
		return false
	}
	w.synced.Store(n)
	return true
}

func (w *wal) sync() error {
	conn, err := w.f.SyscallConn()
	if err != nil {
		return err
	}
	failed := conn.Control(func(fd uintptr) { err = unix.Fdatasync(int(fd)) })
	return errors.Join(failed, err)
}

// reset forgets the records, which Badger has now. If that fails, their version shows it.
func (w *wal) reset() {
	if w != nil && w.end > 0 {
		w.write(make([]byte, walHead), 0)
		w.end = 0
		w.synced.Store(w.appended.Load())
	}
}

func (w *wal) close() error {
	if w == nil {
		return nil
	}
	mem := w.mem
	w.mem = nil
	return errors.Join(unix.Munmap(mem), w.f.Close())
}

// read returns the writes of the records of a batch that has read a version.
func (w *wal) read(version uint64) (writes map[string][]byte, err error) {
	b, err := io.ReadAll(io.NewSectionReader(w.f, 0, walSize))
	if err != nil {
		return nil, err
	}
	w.end = 0
	writes = map[string][]byte{}
	for len(b) > walHead {
		n := uint64(binary.BigEndian.Uint32(b))
		if n == 0 || n > uint64(len(b)-walHead) {
			break
		}
		r := b[:walHead+n]
		if binary.BigEndian.Uint32(r[4:]) != crc32.Checksum(r[8:], castagnoli) || binary.BigEndian.Uint64(r[8:]) != version {
			break
		}
		decodeWrites(r[walHead:], writes)
		b, w.end = b[len(r):], w.end+len(r)
	}
	return writes, nil
}

func appendBytes(to, b []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(b))), b...)
}

// decodeWrites decodes what append has encoded; the checksum was compared.
func decodeWrites(b []byte, writes map[string][]byte) {
	next := func() []byte {
		n, used := binary.Uvarint(b)
		part := b[used : used+int(n)]
		b = b[used+int(n):]
		return part
	}
	for len(b) > 0 {
		key := string(next())
		isSet := b[0] == 1
		if b = b[1:]; isSet {
			writes[key] = next()
		} else {
			writes[key] = nil
		}
	}
}
