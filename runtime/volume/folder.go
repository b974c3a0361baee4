package volume

import (
	"os"

	"berth/runtime/volume/walk"
)

// folder is an open folder: an os.Root for paths below it, and a walk.Dir for what
// os.Root does not offer, which is renames that replace nothing and fsync.
type folder struct {
	root   *os.Root
	dir    *walk.Dir
	shared bool // close does not close the root
}

func newFolder(r *os.Root, p string) (*folder, error) {
	d, err := openFolder(r, p)
	if err != nil {
		return nil, err
	}
	f, err := walk.OpenDir(d, root)
	if err != nil {
		d.Close()
		return nil, err
	}
	return &folder{root: d, dir: f}, nil
}

func (f *folder) close() {
	f.dir.Close()
	if !f.shared {
		f.root.Close()
	}
}

// sync makes the names in the folder durable.
func (f *folder) sync() error { return f.dir.File().Sync() }

// top opens the root folder of the volume.
func (vol *openVolume) top() (*folder, error) {
	dir, err := walk.OpenDir(vol.root, root)
	if err != nil {
		return nil, err
	}
	return &folder{root: vol.root, dir: dir, shared: true}, nil
}

// openFolder opens a folder below r. Unlike r.OpenRoot it never opens anything but
// a folder, so a FIFO cannot block it.
func openFolder(r *os.Root, name string) (*os.Root, error) { return r.OpenRoot(name + "/.") }

// syncDir makes the names in r durable.
func syncDir(r *os.Root) error {
	d, err := walk.OpenDir(r, root)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.File().Sync()
}
