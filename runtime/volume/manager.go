package volume

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/archive"
	"berth/runtime/volume/fsys"
)

// Options apply to all volumes of a Manager.
type Options struct {
	UID, GID int // owner of the root folder of a new volume; -1 is the daemon's own
	Limits   Limits

	// HardLimit requests that new and restored volumes get hard limits.
	// Manager.HardLimitErr returns why the host has none.
	HardLimit bool

	// Bases returns the further directories that hold volumes, each on a file system of its own that is mounted
	// there by others, and In the one that holds a volume; empty: base. Both may be nil.
	Bases []string
	In    func(id string) string

	// Fixed reports whether the directory of a volume must stay what it is, because others have made it for a claim and
	// know it by its inode: its entries are replaced in its place. It may be nil.
	Fixed func(id string) bool

	// Reserved returns the refusal of changes of a volume's files while a transfer has reserved it. It may be nil.
	Reserved func(id string) error

	// StoreDir is the directory of the daemon's store. If it is on the same file
	// system as the volumes, file operations keep a reserve of free space for the
	// store and return v1.ErrDiskFull beyond that. Empty means no reserve.
	StoreDir string
}

// Limits bound one operation. 0 selects the default, which each comment names last.
type Limits struct {
	ExtractBytes  int64 // bytes that an archive may extract to; 10 GiB
	Entries       int   // entries of an archive (read or written) or of a copy; 1,000,000
	Depth         int   // nesting of folders in an archive, a copy or a search; 256
	SearchEntries int   // entries that a search visits; 1,000,000
	HoleBytes     int64 // bytes of holes in the files of a new archive; 1 GiB
	Ratio         int64 // extracted bytes per byte of the archive, above 64 MiB; 20,000
	SearchResults int   // results of a search; 1,000
	ListBytes     int64 // bytes of memory for the list of a folder; 32 MiB
	NameBytes     int64 // bytes of memory for names that an operation keeps; 128 MiB
	ScanSteps     int64 // names that a scan reads; twice the files of the file system and 8 million

	ZipDirectoryBytes int64 // bytes of the directory of a zip, read or written; 24 MiB
	ZipDirectories    int64 // bytes of the directories of all zips that are read or written; 32 MiB

	SearchTime time.Duration // of one search; 10 s

	MimeFiles int           // files whose media types are found in one list or search; 1,000
	MimeTime  time.Duration // that this takes; 2 s
}

// Manager manages the volumes below its base directories and tracks their usage.
// It is safe for concurrent use.
type Manager struct {
	base string
	opt  Options
	bufs sync.Pool // of *bufio.Writer

	projects *projects // nil: limits are soft, because of softErr
	softErr  error

	exchange func(in *fsys.Folder, name string, base *fsys.Folder, id string) error // of a restore; see exchange

	run   string // begins the temporary names in use; an earlier run had another one
	space *Space
	zips  *semaphore.Weighted // of ZipDirectories

	mu      sync.Mutex
	opened  map[*openedFile]bool // by OpenFile
	volumes map[string]*state    // by id
}

// state is what a Manager keeps of a volume.
type state struct {
	*gate
	quota *quota

	replacing sync.Mutex // held from the check of a file until it is replaced or deleted

	completing sync.Mutex // held while a killed restore is completed
	incomplete bool       // a killed restore could not be completed yet; guarded by completing
}

// of returns the state of a volume.
func (m *Manager) of(id string) *state {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.volumes[id]
	if s == nil {
		s = &state{gate: newGate(func() error { return m.opt.Reserved(id) }), quota: new(quota)}
		m.volumes[id] = s
	}
	return s
}

// New returns a Manager of the volumes in the directory base. It creates base with
// mode 0700 if it is missing.
func New(base string, opt Options) (*Manager, error) {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, fmt.Errorf("volumes: %w", err)
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return nil, fmt.Errorf("volumes: %w", err)
	}
	opt.Limits.fill()
	if opt.In == nil {
		opt.In = func(string) string { return "" }
	}
	if opt.Fixed == nil {
		opt.Fixed = func(string) bool { return false }
	}
	if opt.Reserved == nil {
		opt.Reserved = func(string) error { return nil }
	}
	m := &Manager{base: base, opt: opt, exchange: exchange, run: randomName("") + "-",
		zips: semaphore.NewWeighted(opt.Limits.ZipDirectories), volumes: map[string]*state{}, opened: map[*openedFile]bool{}}
	for _, dir := range m.bases() {
		if err := m.findRestores(dir); err != nil {
			return nil, err
		}
	}
	m.softErr = errors.New("storage.hard_limit is off")
	if opt.HardLimit {
		m.projects, m.softErr = openProjects(base)
	}
	m.bufs.New = func() any { return bufio.NewWriterSize(nil, 256<<10) }
	if m.space, err = OpenSpace(base, opt.StoreDir); err != nil {
		return nil, err
	}
	return m, nil
}

// HardLimitErr returns why limits are soft on this host. It returns nil if new volumes have hard ones.
func (m *Manager) HardLimitErr() error { return m.softErr }

func (l *Limits) fill() {
	setDefault(&l.ExtractBytes, 10<<30)
	setDefault(&l.Entries, 1_000_000)
	setDefault(&l.Depth, 256)
	setDefault(&l.Ratio, 20_000) // a tar.bz2 of zeros made by berth has 18,750
	setDefault(&l.SearchEntries, 1_000_000)
	setDefault(&l.SearchTime, 10*time.Second)
	setDefault(&l.MimeFiles, 1000)
	setDefault(&l.MimeTime, 2*time.Second)
	setDefault(&l.HoleBytes, 1<<30)
	setDefault(&l.SearchResults, 1000)
	setDefault(&l.ListBytes, 32<<20)
	setDefault(&l.NameBytes, 128<<20)
	setDefault(&l.ZipDirectoryBytes, 24<<20)
	setDefault(&l.ZipDirectories, 32<<20) // package zip holds four times as much
}

// archiveLimits returns the limits for one archive.
func archiveLimits(m *Manager) archive.Limits {
	l := m.opt.Limits
	return archive.Limits{Bytes: l.ExtractBytes, Entries: l.Entries, Depth: l.Depth, Ratio: l.Ratio,
		ZipDirectoryBytes: l.ZipDirectoryBytes, ZipDirectories: m.zips}
}

func setDefault[N int | int64 | time.Duration](n *N, d N) {
	if *n <= 0 {
		*n = d
	}
}

// bases returns the directories that hold volumes.
func (m *Manager) bases() []string { return append([]string{m.base}, m.opt.Bases...) }

// baseOf returns the directory that holds a volume.
func (m *Manager) baseOf(id string) string { return cmp.Or(m.opt.In(id), m.base) }

// Path returns the volume's directory on this host.
func (m *Manager) Path(id string) string { return filepath.Join(m.baseOf(id), id) }

// Ensure creates the volume's directory with mode 0700 if nothing exists at its
// path. Call it only for volumes that were never created before.
func (m *Manager) Ensure(id string) error {
	base, err := m.openBase(id)
	if err != nil {
		return err
	}
	defer base.Close()
	err = base.Mkdir(id, 0o700)
	if errors.Is(err, fs.ErrExist) {
		if err := m.Check(id); err != nil {
			return err
		}
		err = nil // a crash may have kept an earlier call from the rest
	}
	if err == nil {
		err = m.projects.add(m.Path(id), id)
		m.projects.read(id)
	}
	if err != nil {
		return fmt.Errorf("volume %s: %w", id, err)
	}
	if m.opt.UID >= 0 || m.opt.GID >= 0 {
		err = base.Lchown(id, m.opt.UID, m.opt.GID)
	}
	if err := errors.Join(err, base.Sync()); err != nil {
		return fmt.Errorf("volume %s: %w", id, err)
	}
	return nil
}

// SetHardLimit sets the volume's hard limit for its limit; the file system keeps it. It does nothing during a
// restore, which has lifted the hard limit and sets it again.
func (m *Manager) SetHardLimit(id string) error {
	done, err := m.of(id).change()
	if err != nil {
		return nil
	}
	defer done()
	if err := m.projects.limit(id, m.of(id).quota.Limit()); err != nil {
		return fmt.Errorf("volume %s: hard limit: %w", id, err)
	}
	return nil
}

// Check returns nil if the volume's directory can be used, and otherwise
// v1.ErrDirectoryMissing or v1.ErrNotADirectory.
func (m *Manager) Check(id string) error {
	vol, err := m.open(context.Background(), id)
	if err != nil {
		return err
	}
	vol.close()
	return nil
}

// Present returns the ids of the volumes whose directories are there; none of those that cannot be listed.
func (m *Manager) Present() map[string]bool {
	ids := map[string]bool{}
	for _, dir := range m.bases() {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			ids[e.Name()] = ids[e.Name()] || e.IsDir()
		}
	}
	return ids
}

// Remove removes the volume's directory and everything in it. If ctx ends first,
// or after a crash, the next call continues.
func (m *Manager) Remove(ctx context.Context, id string) error {
	base, err := m.openBase(id)
	if err != nil {
		return err
	}
	defer base.Close()
	done, err := m.of(id).change()
	if err != nil {
		return err
	}
	defer done()
	m.abandon(id)
	if err := m.removeVolume(ctx, base, id); err != nil {
		return fmt.Errorf("volume %s: %w", id, err)
	}
	m.abandon(id) // opened meanwhile
	m.mu.Lock()
	delete(m.volumes, id)
	m.mu.Unlock()
	return errors.Join(m.projects.remove(id), base.Sync())
}

// removeVolume renames the volume's directory, and removes it and its temporary entries.
func (m *Manager) removeVolume(ctx context.Context, base *fsys.Folder, id string) error {
	in, err := m.openTemps(id)
	if err != nil {
		return err
	}
	defer in.Close()
	temps := tempDir + "/" + id
	if m.opt.Fixed(id) {
		err = removeContent(base, id, in)
	} else {
		err = base.Rename(id, temps+"/"+randomName(removedPrefix))
	}
	if fsys.IgnoreMissing(err) != nil {
		return err
	}
	for range maxEmptyTries { // folders that are too deep in a tree are moved up
		err = in.Each(func(name string, _ fs.FileInfo, _ error) error {
			_, err := removeTree(ctx, in, name)
			return err
		})
		if err == nil {
			err = base.Remove(temps)
		}
		if !fsys.Is(err, syscall.ENOTEMPTY, syscall.EEXIST) {
			break
		}
	}
	return fsys.IgnoreMissing(err)
}

// checkID refuses an id that is not one component of a path.
func checkID(id string) error {
	if id == "" || id[0] == '.' || strings.ContainsAny(id, "/\\\x00") {
		return v1.ErrVolumeNotFound
	}
	return nil
}

// openBase opens the directory that holds a volume after it checked the volume's id.
func (m *Manager) openBase(id string) (*fsys.Folder, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	base, err := fsys.NewFolder(os.OpenRoot(m.baseOf(id)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, v1.ErrDirectoryMissing
	}
	return base, err
}

// Volume is a volume that is open for one operation: its root folder, and its quota and gate, which it shares
// with the other operations on it. Manager.open opens it.
type Volume struct {
	*state
	root   *fsys.Folder
	m      *Manager
	id     string       // of the volume
	ctxErr func() error // returns the error of the operation's context
	done   func()       // ends the read in the gate; nil after close
	denied denied       // to the operation

	space *Space // of the host; nil if the volume is on another file system than the store
}

// open opens a volume. It returns v1.ErrNotADirectory if a link or a file is in
// place of its directory, even if it was swapped in during the call.
func (m *Manager) open(ctx context.Context, id string) (*Volume, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	s := m.of(id)
	if err := m.completeRestore(s, id); err != nil {
		return nil, err
	}
	done := s.read() // before the directory is opened, which a restore replaces
	r, info, err := openRoot(m.Path(id))
	if err != nil {
		done()
		return nil, err
	}
	vol := &Volume{state: s, root: r, m: m, id: id, ctxErr: ctx.Err, done: done, denied: newDenied(v1.DeniedIn(ctx))}
	if m.space.Contains(info) {
		vol.space = m.space
	}
	return vol, nil
}

// openRoot opens the directory of a volume, and describes it. OpenRoot would follow a link in place
// of the directory, so it opens the handle of a directory.
func openRoot(dir string) (*fsys.Folder, fs.FileInfo, error) {
	d, err := openDirectory(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, v1.ErrDirectoryMissing
	case fsys.Is(err, syscall.ENOTDIR, syscall.ELOOP):
		return nil, nil, v1.ErrNotADirectory
	case err != nil:
		return nil, nil, err
	}
	defer d.Close()
	info, err := d.Stat()
	if err != nil {
		return nil, nil, err
	}
	r, err := fsys.NewFolder(os.OpenRoot(fsys.Self(d)))
	return r, info, err
}

// close ends the operation. Closing it again does nothing.
func (vol *Volume) close() {
	if vol.done != nil {
		vol.root.Close()
		vol.done()
		vol.done = nil
	}
}

// change opens a volume, calls do with it, which may change its files, and converts
// the error to one that clients receive about p. It returns v1.ErrVolumeRestoring
// during a restore, and v1.ErrTransferring during a transfer.
func (m *Manager) change(ctx context.Context, id, p string, do func(*Volume) error) error {
	done, err := m.of(id).change()
	if err != nil {
		return err
	}
	defer done()
	return m.read(ctx, id, p, func(vol *Volume) error {
		vol.ctxErr = func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return vol.check()
		}
		return do(vol)
	})
}

// read is change for operations that change nothing. A restore does not
// refuse them.
func (m *Manager) read(ctx context.Context, id, p string, do func(*Volume) error) error {
	vol, err := m.open(ctx, id)
	if err != nil {
		return err
	}
	defer vol.close()
	err = refuse(p, do(vol))
	if errors.Is(err, v1.ErrDiskFull) && m.projects.full(id) {
		return v1.ErrSizeLimit
	}
	return err
}

// statfs returns what the file system of the volume has.
func (vol *Volume) statfs() (st unix.Statfs_t, err error) {
	err = unix.Fstatfs(int(vol.root.File.Fd()), &st)
	return st, os.NewSyscallError("statfs", err)
}
