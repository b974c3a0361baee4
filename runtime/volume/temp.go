package volume

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io/fs"
	"os"
	"strings"

	"berth/runtime/volume/quota"
	"berth/runtime/volume/walk"
)

// tempPrefix begins the names of incomplete entries in the root folder of a
// volume. 128 random bits follow, so no name of a tenant collides by chance.
const tempPrefix = ".berth-tmp-"

func isTemp(name string) bool {
	rest, ok := strings.CutPrefix(name, tempPrefix)
	return ok && len(rest) >= 32 && strings.Trim(rest[:32], "0123456789abcdef") == ""
}

// temp is a temporary entry in the root folder of a volume. remove removes
// whatever has its name; an entry that was renamed away stays.
type temp struct {
	vol  *openVolume
	name string
	like fs.FileInfo // the file whose owner a new file gets; nil: the configured owner
}

func (vol *openVolume) newTemp() *temp {
	var b [16]byte
	rand.Read(b[:])
	name := tempPrefix + hex.EncodeToString(b[:])
	vol.m.mu.Lock()
	vol.m.temps[name] = true
	vol.m.mu.Unlock()
	return &temp{vol: vol, name: name}
}

// newFileMode is the mode of a file that replaces no other.
const newFileMode fs.FileMode = 0o644

// create creates the entry as a file.
func (x *temp) create(mode fs.FileMode) (*os.File, error) {
	f, err := x.vol.root.OpenFile(x.name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = x.vol.finish(f, mode)
	if err == nil && x.like != nil {
		err = chownLike(f, x.like)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// mkdir creates the entry as a folder.
func (x *temp) mkdir() (*folder, error) {
	if err := x.vol.root.Mkdir(x.name, 0o700); err != nil {
		return nil, err
	}
	f, err := newFolder(x.vol.root, x.name)
	if err != nil {
		return nil, err
	}
	if err := x.vol.finish(f.dir.File(), 0o700); err != nil {
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
	top, err := x.vol.top()
	if err != nil {
		return err
	}
	defer top.close()
	if err := top.dir.RenameNew(x.name, to.dir, base); err != nil {
		return err
	}
	return to.sync()
}

// publish is rename, and adds the bytes reserved in res to the volume's usage.
func (x *temp) publish(dst string, res *quota.Reservation) error {
	err := x.rename(dst)
	if err == nil {
		x.vol.quota.Add(res.Bytes())
	}
	return err
}

// remove removes the rest of the entry and frees its name. It ignores the
// operation's context; the next scan removes what it cannot remove.
func (x *temp) remove() (freed int64) {
	top, err := walk.OpenDir(x.vol.root, root)
	if err == nil {
		freed, err = walk.Remove(context.Background(), top, x.name, quota.OnDisk)
		top.Close()
	}
	x.forget()
	if err != nil {
		x.vol.m.sweeps.request(x.vol.id)
	}
	return freed
}

func (x *temp) forget() {
	x.vol.m.mu.Lock()
	delete(x.vol.m.temps, x.name)
	x.vol.m.mu.Unlock()
}

// inUse reports whether an operation in flight created the temporary name, or one
// that begins with it.
func (m *Manager) inUse(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.temps[name[:len(tempPrefix)+32]]
}

// hidden returns which entries a walk from the folder start skips: in the volume's
// root all temporary names; elsewhere only those of operations in flight, because
// the walk may reach the root through a link. So a tenant cannot hide files under
// such a name in another folder.
func (vol *openVolume) hidden(start string) func(top bool, name string) bool {
	return func(top bool, name string) bool {
		return isTemp(name) && (start == root && top || vol.m.inUse(name))
	}
}
