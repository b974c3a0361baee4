package server

import (
	"bufio"
	"errors"
	"os"
	"sync"

	"berth/api/auth"
	"berth/api/server/edge"
	"berth/store"
)

// storeContent holds the handler for a backup of the daemon's own store.
type storeContent struct {
	store    *store.Store
	sessions sessions
	dir      string // of the file until it was sent; empty: os.TempDir()
	one      *sync.Mutex
}

// download answers with one consistent state of the store. It is written to a file
// without a name first, so that a slow client does not hold a view of the store.
func (s storeContent) download(c *call) error {
	if !s.one.TryLock() {
		return edge.ErrOperations
	}
	defer s.one.Unlock()
	f, err := os.CreateTemp(s.dir, ".berth-store-")
	if err != nil {
		return err
	}
	if err := errors.Join(os.Remove(f.Name()), s.write(f)); err != nil {
		f.Close()
		return err
	}
	done, err := s.sessions.beginDownload(c, func(*store.Tx, auth.Principal) error { return nil })
	if err != nil {
		f.Close()
		return err
	}
	return edge.SendFile(c.Ctx, f, edge.Download{Name: "berth-store.backup"}, done)
}

func (s storeContent) write(f *os.File) error {
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(store.Backup(s.store, w), w.Flush())
}
