package volume

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io/fs"
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

// temp is a temporary entry of a volume, and the space that is reserved for it. close removes
// whatever has its name; an entry that was renamed away stays.
type temp struct {
	*reservation
	vol   *openVolume
	in    *fsys.Folder // the volume's folder of temporary entries
	name  string
	owner owner
}

// newTemp returns the name of a new temporary entry, and its owner. credit is how many bytes the
// operation frees when it completes. The caller closes it.
func (vol *openVolume) newTemp(o owner, credit int64) (*temp, error) {
	in, err := vol.m.openTemps(vol.id)
	if err != nil {
		return nil, err
	}
	return &temp{vol.newReservation(credit), vol, in, randomName(vol.m.run), o}, nil
}

// newTempFor is newTemp for an entry that is to be in the folder dir, which may be missing.
func (vol *openVolume) newTempFor(dir string) (*temp, error) {
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

// rename moves the complete entry to dst, which must not exist. It creates dst's
// parents.
func (x *temp) rename(dst string) error {
	to, base, err := x.vol.parent(dst)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := x.in.RenameNew(x.name, to, base); err != nil {
		return err
	}
	return to.Sync()
}

// publish is rename, and adds the reserved bytes to the volume's usage.
func (x *temp) publish(dst string) error {
	err := x.rename(dst)
	if err == nil {
		x.vol.quota.Add(x.Bytes())
	}
	return err
}

// newFolder creates the folder name in or below the entry, and opens it.
func (x *temp) newFolder(in *fsys.Folder, name string) (*fsys.Folder, error) {
	if err := x.Grow(blockBytes); err != nil {
		return nil, err
	}
	return in.MakeFolder(name)
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
		return ignoreMissing(err)
	}
	defer in.Close()
	var names []string // read before the first removal, which changes the folder
	err = in.Each(func(name string, _ fs.FileInfo, _ error) error {
		if !strings.HasPrefix(name, m.run) {
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
