package volume

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"berth/runtime/volume/fsys"
)

// tempDir is the directory, beside the volumes, of incomplete and removed entries. Each volume
// has a folder in it, of the volume's id. No container can reach it.
const tempDir = ".tmp"

// A name in a volume's folder of tempDir begins with the run that uses the entry. Anything else
// is to be removed: what this run begins to remove, and what an earlier run left.
const removedPrefix = "removed-"

// sweepTime bounds the removal of entries by a scan, which has other volumes to measure: a
// container that had a folder open when it was removed may still create files in it.
const sweepTime = 10 * time.Second

// randomName returns a name that nothing else has.
func randomName(prefix string) string {
	var b [16]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

// openTemps opens the folder of a volume's temporary entries, and creates it if it is missing.
func (m *Manager) openTemps(id string) (*fsys.Folder, error) {
	base, err := m.openBase(id)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	if err := base.MkdirAll(tempDir+"/"+id, 0o700); err != nil {
		return nil, err
	}
	in, err := base.OpenFolder(tempDir + "/" + id)
	if err != nil {
		return nil, err
	}
	if err := m.projects.join(in.File, id); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// temp is a temporary entry of a volume, a file or a tree, and the space that is reserved for it. close
// removes whatever has its name; an entry that was renamed away stays.
type temp struct {
	*reservation
	vol   *Volume
	in    *fsys.Folder // the volume's folder of temporary entries
	name  string
	owner owner

	durable bool // newFile flushes files to the disk
}

// newTemp returns the name of a new temporary entry, and its owner. credit is how many bytes the
// operation frees when it completes. The caller closes it.
func (vol *Volume) newTemp(o owner, credit int64) (*temp, error) {
	in, err := vol.m.openTemps(vol.id)
	if err != nil {
		return nil, err
	}
	return &temp{reservation: vol.newReservation(credit), vol: vol, in: in, name: randomName(vol.m.run), owner: o}, nil
}

// newTempFor is newTemp for an entry that is to be in the folder dir, which may be missing.
func (vol *Volume) newTempFor(dir string) (*temp, error) {
	o, err := vol.ownerIn(dir)
	if err != nil {
		return nil, err
	}
	return vol.newTemp(o, 0)
}

// newFileMode is the mode of a file that replaces no other.
const newFileMode fs.FileMode = 0o644

// mkdir creates the entry as a folder.
func (x *temp) mkdir() (*fsys.Folder, error) {
	f, err := x.in.MakeFolder(x.name)
	if err != nil {
		return nil, err
	}
	if err := x.owner.finish(f.File, 0o700); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// publish moves the complete entry to dst, which must not exist, and commits its bytes. It creates
// dst's parents.
func (x *temp) publish(dst string) error {
	to, base, err := x.vol.parent(dst)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := x.in.RenameNew(x.name, to, base); err != nil {
		return err
	}
	x.Commit(x.Bytes())
	return to.Sync()
}

// newFolder creates the folder name in or below the entry, and opens it.
func (x *temp) newFolder(in *fsys.Folder, name string) (*fsys.Folder, error) {
	if err := x.Grow(blockBytes); err != nil {
		return nil, err
	}
	return in.MakeFolder(name)
}

// attributes are what a new entry gets when it is complete.
type attributes struct {
	owner
	mode    fs.FileMode
	changed time.Time // zero: it keeps that of its creation
}

// finishFolder gives the folder f its attributes. It comes last because new entries change a folder's
// time.
func (a attributes) finishFolder(f *fsys.Folder) error {
	return errors.Join(a.finish(f.File, a.mode), f.Chtimes(root, time.Time{}, a.changed))
}

// newFile creates a file, which is the entry or below it. fill writes its content.
func (x *temp) newFile(in *fsys.Folder, name string, a attributes, fill func(f *os.File) error) error {
	f, err := in.CreateNew(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err = fill(f); err == nil {
		err = a.finish(f, a.mode)
	}
	if err == nil && x.durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil || a.changed.IsZero() {
		return err
	}
	return in.SetTime(name, a.changed)
}

// newLink creates a symbolic link in or below the entry.
func (x *temp) newLink(in *fsys.Folder, name, target string, o owner) error {
	if err := x.Grow(blockBytes); err != nil {
		return err
	}
	if err := in.Symlink(target, name); err != nil {
		return err
	}
	return o.finishLink(in, name)
}

// close removes the rest of the entry, and releases the space. It ignores the operation's context;
// the next scan removes what it cannot remove.
func (x *temp) close() (freed int64) {
	freed, err := removeTree(context.Background(), x.in, x.name)
	if err != nil {
		_ = x.in.RenameNew(x.name, x.in, randomName(removedPrefix)) // or the next start removes it
	}
	x.in.Close()
	x.Release()
	return freed
}

// Sweep removes the entries of a volume that an interrupted removal or an earlier run left.
func (m *Manager) Sweep(ctx context.Context, id string) error {
	return m.eachRemoved(id, func(in *fsys.Folder, name string) error {
		_, err := removeTree(ctx, in, name)
		return err
	})
}

// eachRemoved calls do for each temporary entry of a volume that is to be removed.
func (m *Manager) eachRemoved(id string, do func(in *fsys.Folder, name string) error) error {
	base, err := m.openBase(id)
	if err != nil {
		return err
	}
	defer base.Close()
	in, err := base.OpenFolder(tempDir + "/" + id)
	if err != nil {
		return fsys.IgnoreMissing(err)
	}
	defer in.Close()
	var names []string // read before the first removal, which changes the folder
	err = in.Each(func(name string, _ fs.FileInfo, _ error) error {
		if !strings.HasPrefix(name, m.run) && name != restoredName && name != enteringName { // which a restore in flight may have
			names = append(names, name)
		}
		return nil
	})
	for _, name := range names {
		if err == nil {
			err = do(in, name)
		}
	}
	return err
}
