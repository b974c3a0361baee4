package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

const (
	scanLinks    = 1 << 20 // inodes with several hard links that a scan remembers
	namesPerFile = 4       // names that a volume may have for each file of its v1.FilesLimit: links to one file count as one
)

// scan adds up the bytes on disk of a tree. It stops with errEnough above maxBytes or
// maxFiles, or after maxSteps names; 0 means no bound. It skips the content of folders that
// it cannot read or that are nested too deeply.
type scan struct {
	vol   *Volume
	use   v1.Usage
	steps int64 // names read, with hard links
	links map[fsys.Inode]bool

	unmeasured string // a reason of v1.UsageMeasured; empty: it measured all

	maxBytes, maxFiles, maxSteps int64
}

// Scan measures the bytes on disk of the volume and stores them as its usage. It walks the
// tree: hard links count once, each file and folder at least one block, and files without a
// name that OpenFile has open count too. It reads metadata only and tolerates concurrent changes. A volume counts as
// over its limit if it cannot be measured whole: a walk of far more names than the file system has files ends, because the
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
	s := scan{vol: &Volume{root: r, m: m, ctxErr: ctx.Err}, maxBytes: most, maxFiles: v1.FilesLimit(most), links: map[fsys.Inode]bool{}}
	if err := s.run(); err != nil && !errors.Is(err, errEnough) {
		return s.use, err
	}
	if most > 0 && s.unmeasured != "" {
		s.use.Bytes = max(s.use.Bytes, most+1)
	}
	return s.use, nil
}

// maxNames returns how many names a walk of the volume reads at most, with a limit of bytes or none: as many
// as the file system of the volumes permits.
func (vol *Volume) maxNames(limit int64) (int64, error) {
	st, err := vol.statfs()
	if err != nil {
		return 0, err
	}
	most := stepsOf(st)
	if vol.m.opt.Limits.ScanSteps > 0 {
		most = vol.m.opt.Limits.ScanSteps
	}
	if limit > 0 {
		most = min(most, namesPerFile*v1.FilesLimit(limit))
	}
	return most, nil
}

// runBounded walks a volume with a limit of bytes, or none.
func (s *scan) runBounded(limit int64) (err error) {
	if s.maxSteps, err = s.vol.maxNames(limit); err != nil {
		return err
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
	return w.Walk(s.vol.root, root, 0)
}

// walker returns a walker that counts.
func (s *scan) walker() fsys.Walker {
	return fsys.Walker{Check: s.vol.ctxErr, Depth: maxDepth, Visit: s.add, Failed: s.skip}
}

// addRemoved counts a removed entry that Sweep has left.
func (s *scan) addRemoved(in *fsys.Folder, name string) error {
	e, err := fsys.Lookup(in, root, name)
	if err == nil {
		err = s.add(e)
	}
	if err != nil || !e.Info.IsDir() {
		return fsys.IgnoreMissing(err)
	}
	w := s.walker()
	return w.Enter(e, 0)
}

// skip skips an entry that cannot be read or entered, which a container has created.
func (s *scan) skip(_ string, err error) error {
	switch err = fsys.IgnoreMissing(err); {
	case errors.Is(err, fsys.ErrTooDeep):
		s.unmeasured = v1.ReasonTooDeep
	case errors.Is(err, fs.ErrPermission):
		s.unmeasured = v1.ReasonUnreadable
	default:
		return err
	}
	return nil
}

func (s *scan) add(it fsys.Entry) error {
	if s.steps++; s.maxSteps > 0 && s.steps > s.maxSteps {
		return errEnough
	}
	if it.Info.IsDir() || fsys.Stat(it.Info).Nlink < 2 {
		return s.count(onDisk(it.Info))
	}
	id := fsys.InodeOf(it.Info)
	if s.links[id] {
		return nil
	}
	if len(s.links) < scanLinks {
		s.links[id] = true
	}
	return s.count(inodeBytes(it.Info))
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
