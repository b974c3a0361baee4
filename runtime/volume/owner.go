package volume

import (
	"io/fs"
	"os"
	"syscall"
)

// owner returns the arguments of chown for new files; -1 changes nothing.
func (m *Manager) owner() (uid, gid int) { return m.opt.UID, m.opt.GID }

// own sets the configured owner on the entry name of d.
func (vol *openVolume) own(d *folder, name string) error {
	uid, gid := vol.m.owner()
	if uid < 0 && gid < 0 {
		return nil
	}
	return d.Lchown(name, uid, gid)
}

// chownLike gives f the owner of another file.
func chownLike(f *os.File, other fs.FileInfo) error {
	st, known := other.Sys().(*syscall.Stat_t)
	if !known {
		return nil
	}
	return f.Chown(int(st.Uid), int(st.Gid))
}

// finish sets the mode and the owner of a new file or folder.
func (vol *openVolume) finish(f *os.File, mode fs.FileMode) error {
	if uid, gid := vol.m.owner(); uid >= 0 || gid >= 0 {
		if err := f.Chown(uid, gid); err != nil {
			return err
		}
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&^fs.ModeType != mode { // the umask has changed it, or the folder's setgid
		err = f.Chmod(mode)
	}
	return err
}
