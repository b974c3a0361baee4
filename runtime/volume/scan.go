package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// scanLinks is how many inodes with several hard links a scan remembers.
const scanLinks = 1 << 20

// scan adds up the bytes on disk of a tree. It stops with errEnough above maxBytes or
// maxFiles, or after maxSteps names; 0 means no bound. It skips the content of folders that
// it cannot read or that are nested too deeply.
type scan struct {
	vol   *openVolume
	use   v1.Usage
	steps int64 // names read, with hard links
	links map[fsys.Inode]bool

	unmeasured string // a reason of v1.UsageMeasured; empty: it measured all

	maxBytes, maxFiles, maxSteps int64
}

// Scan measures the bytes on disk of the volume and stores them as its usage. It walks the
// tree: hard links count once, each file and folder at least one block, and files without a
// name that InPlace has open count too. It reads metadata only and tolerates concurrent changes. A volume counts as over its limit if it cannot be
// measured whole: a walk of far more names than the file system has files ends, because the
// tree grows ahead of it, and folders that are nested too deeply or that berth may not read
// are not entered. Unmeasured returns the reason.
// Before, it calls Sweep for a moment: what that leaves counts too.
func (m *Manager) Scan(ctx context.Context, id string) (v1.Usage, error) {
	vol, err := m.open(ctx, id)
	if err != nil {
		return v1.Usage{}, err
	}
	defer vol.close()
	sweep, cancel := context.WithTimeout(ctx, sweepTime)
	_ = m.Sweep(sweep, id) // what it leaves counts
	cancel()
	s := scan{vol: vol, links: map[fsys.Inode]bool{}}
	if err := s.runBounded(vol.quota.Limit()); err != nil {
		return v1.Usage{}, err
	}
	s.use.Bytes += m.unlinked(id)
	vol.quota.SetUsed(s.use, s.unmeasured)
	return s.use, nil
}

// Measure adds up the bytes on disk of a directory tree of this host, as Scan does.
// It stops early above most bytes, or above v1.FilesLimit(most) files. A tree that it cannot
// measure whole is above most.
func (m *Manager) Measure(ctx context.Context, dir string, most int64) (v1.Usage, error) {
	r, err := fsys.NewFolder(os.OpenRoot(dir))
	if err != nil {
		return v1.Usage{}, err
	}
	defer r.Close()
	s := scan{vol: &openVolume{root: r, m: m, ctxErr: ctx.Err}, maxBytes: most, maxFiles: v1.FilesLimit(most), links: map[fsys.Inode]bool{}}
	if err := s.run(); err != nil && !errors.Is(err, errEnough) {
		return s.use, err
	}
	if most > 0 && s.unmeasured != "" {
		s.use.Bytes = max(s.use.Bytes, most+1)
	}
	return s.use, nil
}

// runBounded walks a volume with a limit of bytes, or none, for as many steps as the file
// system of the volumes permits.
func (s *scan) runBounded(limit int64) error {
	st, err := s.vol.statfs()
	if err != nil {
		return err
	}
	s.maxSteps = stepsOf(st)
	if most := s.vol.m.opt.Limits.ScanSteps; most > 0 {
		s.maxSteps = most
	}
	if err = s.run(); err == nil {
		err = s.vol.m.eachRemoved(s.vol.id, s.addRemoved)
	}
	if errors.Is(err, errEnough) {
		s.unmeasured, err = v1.ReasonTooManyNames, nil
	}
	if err == nil && limit > 0 && s.unmeasured != "" {
		s.use.Bytes = max(s.use.Bytes, limit+1)
	}
	return err
}

// stepsOf returns how many names a scan reads at most: twice the inodes of the file system that
// are in use now, and some for those that are made meanwhile.
func stepsOf(st unix.Statfs_t) int64 {
	const slack = 8 << 20
	if st.Files > st.Ffree {
		return 2*int64(st.Files-st.Ffree) + slack
	}
	return v1.FilesLimit(int64(st.Blocks)*int64(st.Bsize)) + slack // it does not count them
}

// run walks the volume.
func (s *scan) run() error {
	info, err := s.vol.root.File.Stat()
	if err != nil {
		return err
	}
	s.use = v1.Usage{Bytes: onDisk(info), Files: 1}
	w := s.walker()
	return w.walk(s.vol.root, "", 0)
}

// walker returns a walker that counts.
func (s *scan) walker() walker {
	return walker{ctxErr: s.vol.ctxErr, depth: maxDepth, visit: s.add, failed: s.skip, tooDeep: s.skipDeep}
}

// addRemoved counts a removed entry that Sweep has left.
func (s *scan) addRemoved(in *fsys.Folder, name string) error {
	e, err := lookup(in, "", name)
	if err == nil {
		err = s.add(e)
	}
	if err != nil || !e.info.IsDir() {
		return ignoreMissing(err)
	}
	w := s.walker()
	return w.enter(e, 0)
}

func (s *scan) skipDeep() error {
	s.unmeasured = v1.ReasonTooDeep
	return nil
}

// skip skips an entry that cannot be read, which a container has created.
func (s *scan) skip(err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	s.unmeasured = v1.ReasonUnreadable
	return nil
}

func (s *scan) add(it entry) error {
	if s.steps++; s.maxSteps > 0 && s.steps > s.maxSteps {
		return errEnough
	}
	if it.info.IsDir() || fsys.Stat(it.info).Nlink < 2 {
		return s.count(onDisk(it.info))
	}
	id := fsys.InodeOf(it.info)
	if s.links[id] {
		return nil
	}
	if len(s.links) < scanLinks {
		s.links[id] = true
	}
	return s.count(inodeBytes(it.info))
}

// count adds one file or folder of n bytes.
func (s *scan) count(n int64) error {
	s.use.Bytes += n
	s.use.Files++
	if s.maxBytes > 0 && s.use.Bytes > s.maxBytes || s.maxFiles > 0 && s.use.Files > s.maxFiles {
		return errEnough
	}
	return nil
}

// SetLimit sets the volume's limit in bytes; 0 means none. last is the usage that
// was stored before a restart; it counts until the first scan.
func (m *Manager) SetLimit(id string, limit int64, last v1.Usage) {
	m.of(id).quota.SetLimit(limit, last)
}

// Used returns the volume's usage as far as it is known without a scan.
func (m *Manager) Used(id string) v1.Usage { return m.of(id).quota.Used() }

// Unmeasured returns why the last scan of a volume did not measure the whole tree, a reason
// of v1.UsageMeasured; empty if it did.
func (m *Manager) Unmeasured(id string) string { return m.of(id).quota.Unmeasured() }

// gatherTime is how long Changed collects changes before it reports them.
const gatherTime = time.Second

// Changed calls notify for each volume whose usage changed, within about a second
// of the change, until ctx ends. Only one goroutine may call it at a time.
func (m *Manager) Changed(ctx context.Context, notify func(id string)) error {
	tick := time.NewTicker(gatherTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, id := range m.takeChanged() {
			notify(id)
		}
	}
}

// takeChanged returns the volumes whose usage changed since the last call.
func (m *Manager) takeChanged() (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, s := range m.volumes {
		if s.quota.takeChanged() {
			ids = append(ids, id)
		}
	}
	return ids
}
