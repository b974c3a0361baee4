package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	v1 "berth/api/v1"
)

// Options are the same for all volumes.
type Options struct {
	UID, GID int // owner of what the API makes; -1 is the daemon's own
	Limits   Limits

	// HardLimit gives a new volume that has a limit a file system of its own, if
	// the host can: see Manager.HardLimit.
	HardLimit bool

	// StoreDir is the directory of the daemon's store. If it is on the file system
	// of the volumes, file operations leave a reserve of free space to it, and are
	// v1.ErrDiskFull beyond that. Empty: no reserve.
	StoreDir string
}

// Limits bound what one operation may make. 0 takes the default.
type Limits struct {
	ExtractBytes int64 // bytes that an archive may unfold to; 10 GiB
	Entries      int   // entries of an archive, either way, or of a copy; 1,000,000
	Depth        int   // folders inside folders, of an archive, a copy or a search; 256
	Searched     int   // entries that a search looks at; 1,000,000
	Holes        int64 // bytes of holes in the files of an archive that is made; 1 GiB
	Ratio        int64 // bytes out per byte of the archive, above 64 MiB; 20,000
	Found        int   // results of a search; 1,000
	Listed       int64 // bytes of memory for a list of a folder; 32 MiB
	Held         int64 // bytes of memory for names that have to be kept; 128 MiB

	SearchTime time.Duration // 10 s
}

// Manager keeps the volumes below one base directory, and knows what they use.
// It is safe for concurrent use.
type Manager struct {
	base string
	opt  Options
	bufs sync.Pool // of *[]byte

	images *images
	space  *space
	noHard error // why limits are only soft here

	mu     sync.Mutex
	temps  map[string]bool   // temporary names in use
	usages map[string]*quota // by volume id
	news   map[string]bool   // volumes whose use has changed since Changed told of it
	wake   chan struct{}
}

// Files works on what is in the volumes of a Manager.
type Files struct{ m *Manager }

// Files gives what works on the files of m's volumes.
func (m *Manager) Files() Files { return Files{m} }

// New makes a Manager of the volumes in base, a directory that is made when it
// is missing, with mode 0700.
func New(base string, opt Options) (*Manager, error) {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, fmt.Errorf("volumes: %w", err)
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return nil, fmt.Errorf("volumes: %w", err)
	}
	opt.Limits.fill()
	if opt.UID == os.Geteuid() {
		opt.UID = -1
	}
	if opt.GID == os.Getegid() {
		opt.GID = -1
	}
	m := &Manager{base: base, opt: opt, temps: map[string]bool{}, usages: map[string]*quota{},
		news: map[string]bool{}, wake: make(chan struct{}, 1)}
	m.bufs.New = func() any { b := make([]byte, 256<<10); return &b }
	if m.images, err = openImages(base); err != nil {
		return nil, err
	}
	if m.space, err = newSpace(base, opt.StoreDir); err != nil {
		return nil, err
	}
	m.noHard = errors.New("it is not asked for")
	if opt.HardLimit {
		m.noHard = m.images.probe(context.Background())
	}
	return m, nil
}

// HardLimit says why limits are only soft on this host; nil: they are hard, for
// volumes that are made with one.
func (m *Manager) HardLimit() error { return m.noHard }

func (l *Limits) fill() {
	setDefault(&l.ExtractBytes, 10<<30)
	setDefault(&l.Entries, 1_000_000)
	setDefault(&l.Depth, 256)
	setDefault(&l.Ratio, 20_000) // our own tar.bz2 of zeros is 1 : 18,750
	setDefault(&l.Searched, 1_000_000)
	setDefault(&l.SearchTime, 10*time.Second)
	setDefault(&l.Holes, 1<<30)
	setDefault(&l.Found, 1000)
	setDefault(&l.Listed, 32<<20)
	setDefault(&l.Held, 128<<20)
}

func setDefault[N int | int64 | time.Duration](n *N, d N) {
	if *n <= 0 {
		*n = d
	}
}

// Path is where the volume is on this host.
func (m *Manager) Path(id string) string { return filepath.Join(m.base, id) }

// Ensure makes the volume's directory, 0700, if there is nothing at its place.
// It is for volumes that were never made before.
func (m *Manager) Ensure(id string) error {
	base, err := m.openBase(id)
	if err != nil {
		return err
	}
	defer base.Close()
	err = base.Mkdir(id, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return m.Check(id)
	}
	if limit := m.quota(id).bound(); err == nil && limit > 0 && m.noHard == nil {
		if err = m.images.make(context.Background(), id, limit); err != nil {
			err = errors.Join(err, m.images.remove(id), base.Remove(id))
		}
	}
	if err != nil {
		return fmt.Errorf("volume %s: %w", id, err)
	}
	if uid, gid := m.owner(); uid >= 0 || gid >= 0 {
		err = base.Lchown(id, uid, gid)
	}
	if err := errors.Join(err, syncDir(base)); err != nil {
		return fmt.Errorf("volume %s: %w", id, err)
	}
	return nil
}

// Check says whether the volume's directory can be used: ErrDirectoryMissing
// of v1, ErrNotADirectory, or nil.
func (m *Manager) Check(id string) error {
	if m.images.holds(id) {
		if err := m.images.fit(context.Background(), id, m.quota(id).bound()); err != nil {
			return fmt.Errorf("volume %s: %w", id, err)
		}
	}
	t, err := m.open(context.Background(), id)
	if err != nil {
		return err
	}
	t.close()
	return nil
}

// Remove takes the volume's directory away with all that is in it. When ctx
// ends first, or after a crash, the next call goes on.
func (m *Manager) Remove(ctx context.Context, id string) error {
	base, err := m.openBase(id)
	if err != nil {
		return err
	}
	defer base.Close()
	if m.images.holds(id) {
		if err := m.images.remove(id); err != nil {
			return fmt.Errorf("volume %s: %w", id, err)
		}
	}
	gone := ".removing-" + id
	if err := base.Rename(id, gone); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("volume %s: %w", id, err)
	}
	if err := removeFrom(ctx, base, gone); err != nil {
		return fmt.Errorf("volume %s: %w", id, err)
	}
	m.mu.Lock()
	delete(m.usages, id)
	m.mu.Unlock()
	return syncDir(base)
}

// removeFrom removes the entry gone of base with all that is in it, and what an
// older berth has moved up from it.
func removeFrom(ctx context.Context, base *os.Root, gone string) error {
	all, err := openDirfd(base, root)
	if err != nil {
		return err
	}
	defer all.close()
	return sweep(ctx, all, func(name string) bool { return name == gone || strings.HasPrefix(name, gone+"-") })
}

// openBase opens the base directory, for the sake of one volume.
func (m *Manager) openBase(id string) (*os.Root, error) {
	if id == "" || id[0] == '.' || strings.ContainsAny(id, "/\\\x00") {
		return nil, v1.ErrVolumeNotFound
	}
	base, err := os.OpenRoot(m.base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, v1.ErrDirectoryMissing
	}
	return base, err
}

// owner is what Lchown and Chown of new files want; -1 changes nothing.
func (m *Manager) owner() (uid, gid int) { return m.opt.UID, m.opt.GID }
