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
func (m *Manager) openTemps(id string) (*folder, error) {
	base, err := m.openBase(id)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	in, err := openFolder(base, tempDir+"/"+id)
	if errors.Is(err, fs.ErrNotExist) {
		for _, dir := range []string{tempDir, tempDir + "/" + id} {
			if err := base.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
		}
		in, err = openFolder(base, tempDir+"/"+id)
	}
	if err != nil {
		return nil, err
	}
	if err := m.projects.join(in.file, id); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// temp is a temporary entry of a volume. close removes whatever has its name; an entry that
// was renamed away stays.
type temp struct {
	vol   *openVolume
	in    *folder // the volume's folder of temporary entries
	name  string
	owner owner
}

// newTemp returns the name of a new temporary entry, and its owner. The caller closes it.
func (vol *openVolume) newTemp(o owner) (*temp, error) {
	in, err := vol.m.openTemps(vol.id)
	if err != nil {
		return nil, err
	}
	return &temp{vol: vol, in: in, name: randomName(vol.m.run), owner: o}, nil
}

// newFileMode is the mode of a file that replaces no other.
const newFileMode fs.FileMode = 0o644

// create creates the entry as a file.
func (x *temp) create(mode fs.FileMode) (*os.File, error) {
	f, err := x.in.create(x.name)
	if err != nil {
		return nil, err
	}
	if err := x.owner.finish(f, mode); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// mkdir creates the entry as a folder.
func (x *temp) mkdir() (*folder, error) {
	if err := x.in.Mkdir(x.name, 0o700); err != nil {
		return nil, err
	}
	f, err := openFolder(x.in.Root, x.name)
	if err != nil {
		return nil, err
	}
	if err := x.owner.finish(f.file, 0o700); err != nil {
		f.close()
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
	defer to.close()
	if err := x.in.renameNew(x.name, to, base); err != nil {
		return err
	}
	return to.sync()
}

// publish is rename, and adds the bytes reserved in res to the volume's usage.
func (x *temp) publish(dst string, res *reservation) error {
	err := x.rename(dst)
	if err == nil {
		x.vol.quota.Add(res.Bytes())
	}
	return err
}

// close removes the rest of the entry. It ignores the operation's context; the next scan
// removes what it cannot remove.
func (x *temp) close() (freed int64) {
	freed, err := removeTree(context.Background(), x.in, x.name)
	if err != nil {
		_ = x.in.renameNew(x.name, x.in, randomName(removedPrefix)) // or the next start removes it
	}
	x.in.close()
	return freed
}

// Sweep removes the entries of a volume that an interrupted removal or an earlier run left.
func (m *Manager) Sweep(ctx context.Context, id string) error {
	return m.eachRemoved(id, func(in *folder, name string) error {
		_, err := removeTree(ctx, in, name)
		return err
	})
}

// eachRemoved calls do for each temporary entry of a volume that is to be removed.
func (m *Manager) eachRemoved(id string, do func(in *folder, name string) error) error {
	base, err := m.openBase(id)
	if err != nil {
		return err
	}
	defer base.Close()
	in, err := openFolder(base, tempDir+"/"+id)
	if err != nil {
		return ignoreMissing(err)
	}
	defer in.close()
	var names []string // read before the first removal, which changes the folder
	err = in.each(func(name string, _ fs.FileInfo, _ error) error {
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
