package volume

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io/fs"
	"os"
	"strings"
	"sync"

	"berth/runtime/volume/quota"
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
	t    *tree
	name string
}

func (t *tree) newTemp() *temp {
	var b [16]byte
	rand.Read(b[:])
	name := tempPrefix + hex.EncodeToString(b[:])
	t.m.mu.Lock()
	t.m.temps[name] = true
	t.m.mu.Unlock()
	return &temp{t: t, name: name}
}

// create creates the entry as a file with mode 0644.
func (x *temp) create() (*os.File, error) {
	f, err := x.t.root.OpenFile(x.name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := x.t.finish(f, 0o644); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// mkdir creates the entry as a folder.
func (x *temp) mkdir() (*folder, error) {
	if err := x.t.root.Mkdir(x.name, 0o700); err != nil {
		return nil, err
	}
	f, err := newFolder(x.t.root, x.name)
	if err != nil {
		return nil, err
	}
	if err := x.t.finish(f.dir, 0o700); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// rename moves the complete entry to dst, which must not exist. It creates dst's
// parents.
func (x *temp) rename(dst string) error {
	to, base, err := x.t.parent(dst)
	if err != nil {
		return err
	}
	defer to.close()
	top, err := x.t.top()
	if err != nil {
		return err
	}
	defer top.close()
	if err := top.fd().moveNew(x.name, to.fd(), base); err != nil {
		return err
	}
	return to.dir.Sync()
}

// publish is rename, and adds the bytes reserved in res to the volume's usage.
func (x *temp) publish(dst string, res *quota.Reservation) error {
	err := x.rename(dst)
	if err == nil {
		x.t.quota.Add(res.Bytes())
	}
	return err
}

// finish sets the mode and the owner of a new file or folder.
func (t *tree) finish(f *os.File, mode fs.FileMode) error {
	if uid, gid := t.m.owner(); uid >= 0 || gid >= 0 {
		if err := f.Chown(uid, gid); err != nil {
			return err
		}
	}
	return f.Chmod(mode)
}

// remove removes the rest of the entry and frees its name. It ignores the
// operation's context; the next scan removes what it cannot remove.
func (x *temp) remove() (freed int64) {
	top, err := openDirfd(x.t.root, root)
	if err == nil {
		freed, err = removeTree(context.Background(), top, x.name)
		top.close()
	}
	x.forget()
	if err != nil {
		x.t.m.sweeps.request(x.t.id)
	}
	return freed
}

func (x *temp) forget() {
	x.t.m.mu.Lock()
	delete(x.t.m.temps, x.name)
	x.t.m.mu.Unlock()
}

// Sweep removes the temporary entries that a crash left in the volume.
func (m *Manager) Sweep(ctx context.Context, id string) error {
	t, err := m.open(ctx, id)
	if err != nil {
		return err
	}
	defer t.close()
	top, err := openDirfd(t.root, root)
	if err != nil {
		return err
	}
	defer top.close()
	return sweep(ctx, top, func(name string) bool { return isTemp(name) && !m.inUse(name) })
}

// sweep removes the entries of d that isLeft selects, in batches, because there
// may be very many.
func sweep(ctx context.Context, d *dirfd, isLeft func(name string) bool) error {
	for {
		var left []string
		err := d.each(func(name string) error {
			if isLeft(name) && len(left) < sweepAtOnce {
				left = append(left, name)
			}
			return ctx.Err()
		})
		if err != nil || len(left) == 0 {
			return err
		}
		for _, name := range left {
			if _, err := removeTree(ctx, d, name); err != nil {
				return err
			}
		}
	}
}

// sweepAtOnce is how many names a batch of a sweep has.
const sweepAtOnce = 512

// inUse reports whether an operation in flight created the temporary name, or one
// that begins with it.
func (m *Manager) inUse(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.temps[name[:len(tempPrefix)+32]]
}

// sweeps holds the volumes that need no sweep, which are those without remains of a
// crash or of an interrupted removal.
type sweeps struct {
	mu    sync.Mutex
	clean map[string]bool
}

func newSweeps() *sweeps { return &sweeps{clean: map[string]bool{}} }

// start reports whether the volume needs a sweep, and records that it is swept. So
// a removal that fails during the sweep requests another one.
func (s *sweeps) start(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	needed := !s.clean[id]
	s.clean[id] = true
	return needed
}

// request makes the next scan sweep the volume.
func (s *sweeps) request(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clean, id)
}
