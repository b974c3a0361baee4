package volume

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"berth/runtime/volume/fsys"
)

// Accounts are the account that a volume is given to, and those of its other users.
type Accounts struct {
	UID, GID int
	Others   []int // the uids of the other accounts that use the volume: what they own stays theirs
}

// NotOwned describes the entries of a volume that its new owner does not own, and cannot write.
type NotOwned struct {
	Entries int
	Path    string // of one of them; empty: the volume's folder
	UID     int    // whose that one is; -1: unknown
	Err     error  // why it could not be given; nil: it is one of Accounts.Others
}

// errTooManyNames is why Own leaves what is beyond the names that it visits.
var errTooManyNames = errors.New("too many files")

// Own gives a volume and everything in it to an account, and returns what it left: folders, files, and
// links themselves. It changes neither what a link leads to nor what is mounted in the volume. Each entry is
// changed by a handle of it, whatever a container puts in its place meanwhile. An entry that belongs to the
// account already costs one description, so that a second call is cheap; if ctx ends first, the next call
// continues. A file with several names is one file, whose names are all in the volume: a container cannot
// link to what is outside of its mount.
func (m *Manager) Own(ctx context.Context, id string, to Accounts) (left NotOwned, err error) {
	err = m.change(ctx, id, "", func(vol *Volume) error {
		o := owning{to: to, left: &left}
		if o.names, err = vol.maxNames(vol.quota.Limit()); err != nil {
			return err
		}
		info, err := vol.root.File.Stat()
		if err != nil {
			return err
		}
		if o.differs(info) {
			o.leave("", info, vol.root.File.Chown(to.UID, to.GID))
		} else {
			o.leaveOther("", info)
		}
		w := fsys.Walker{Check: vol.ctxErr, Depth: maxDepth, Visit: o.visit, Failed: o.failed}
		err = w.Walk(vol.root, root, 0)
		if errors.Is(err, errTooManyNames) {
			o.leave("", info, err)
			return nil
		}
		return err
	})
	return left, err
}

// owning is one walk of Own.
type owning struct {
	to    Accounts
	left  *NotOwned
	names int64 // that may be visited still
}

// differs reports whether an entry is to be given to the account.
func (o *owning) differs(info fs.FileInfo) bool {
	uid := int(fsys.Stat(info).Uid)
	return uid != o.to.UID && !slices.Contains(o.to.Others, uid)
}

// visit gives an entry to the account. It returns fs.SkipDir for one that something is mounted on, and for
// one that was replaced since: the next start gives that.
func (o *owning) visit(e fsys.Entry) error {
	if o.names--; o.names < 0 {
		return errTooManyNames
	}
	differs := o.differs(e.Info)
	if !differs {
		o.leaveOther(e.Path(), e.Info)
	}
	if !differs && !e.Info.IsDir() {
		return nil
	}
	found, err := e.In.FindUnmounted(e.Name, e.Info)
	if err == nil {
		defer found.Close()
		if differs {
			err = fsys.Chown(found, o.to.UID, o.to.GID)
		}
	}
	if fsys.Is(err, unix.EXDEV, fs.ErrNotExist) {
		return fs.SkipDir
	}
	o.leave(e.Path(), e.Info, err)
	return nil
}

// failed counts an entry that could not be described or entered.
func (o *owning) failed(path string, err error) error {
	if err = fsys.IgnoreMissing(err); err != nil {
		o.count(NotOwned{Path: path, UID: -1, Err: err})
	}
	return nil
}

// leaveOther counts an entry of another account that the owner cannot write. A link has no mode.
func (o *owning) leaveOther(path string, info fs.FileInfo) {
	s, mode := fsys.Stat(info), info.Mode()
	writable := int(s.Uid) == o.to.UID || mode.Perm()&0o002 != 0 || int(s.Gid) == o.to.GID && mode.Perm()&0o020 != 0
	if !writable && mode&fs.ModeSymlink == 0 {
		o.count(NotOwned{Path: path, UID: int(s.Uid)})
	}
}

// leave counts an entry that could not be given to the owner.
func (o *owning) leave(path string, info fs.FileInfo, err error) {
	if err != nil {
		o.count(NotOwned{Path: path, UID: int(fsys.Stat(info).Uid), Err: err})
	}
}

// count counts an entry, and keeps the first.
func (o *owning) count(n NotOwned) {
	n.Entries = o.left.Entries + 1
	if o.left.Entries > 0 {
		n.Path, n.UID, n.Err = o.left.Path, o.left.UID, o.left.Err
	}
	*o.left = n
}
