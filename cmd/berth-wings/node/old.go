package node

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"berth/api/egg"
	v1 "berth/api/v1"
)

// oldPrefix begins the value of the label of a restore of a backup that wings has made; its mode follows.
const oldPrefix = "wings-"

// oldBackups returns where wings has put a backup: Pelican's in a folder for each server, Pterodactyl's not.
func (n *Node) oldBackups(s *server, id string) []string {
	dir, name := n.config().System.BackupDirectory, id+".tar.gz"
	return []string{filepath.Join(dir, s.uuid, name), filepath.Join(dir, name)}
}

// openOld opens a backup that wings has made.
func (n *Node) openOld(s *server, id string) (*os.File, error) {
	if !egg.IsServerUUID(id) {
		return nil, errNoBackup
	}
	for _, path := range n.oldBackups(s, id) {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			return nil, err
		}
		return os.Open(path)
	}
	return nil, errNoBackup
}

// hasOld returns an error unless wings has made a backup.
func (n *Node) hasOld(s *server, id string) error {
	content, err := n.openOld(s, id)
	if err != nil {
		return err
	}
	return content.Close()
}

// downloadOld sends a backup that wings has made.
func (n *Node) downloadOld(c *call, s *server, id string) error {
	content, err := n.openOld(s, id)
	if err != nil {
		return err
	}
	defer content.Close()
	info, err := content.Stat()
	if err != nil {
		return err
	}
	c.attach(id + ".tar.gz")
	return n.stream(c, content, info.Size())
}

// restoreOld restores a backup that wings has made. It may be called again: the files are the same then.
func (n *Node) restoreOld(ctx context.Context, s *server, id, mode string) error {
	return n.untilDone(ctx, s, func() error {
		content, err := n.openOld(s, id)
		if err != nil {
			return err
		}
		defer content.Close()
		err = n.restoreArchive(ctx, s, id, content, mode == v1.RestoreReplace)
		if has(err, v1.DiskFull) {
			return errNoSpace // for good: another attempt would fill the disk again
		}
		return err
	})
}

// deleteOld deletes a backup that wings has made.
func (n *Node) deleteOld(s *server, id string) error {
	content, err := n.openOld(s, id)
	if err != nil {
		return err
	}
	return errors.Join(content.Close(), os.Remove(content.Name()))
}

// deleteOldOf deletes the backups that wings has made of one server and put into a folder for it.
func (n *Node) deleteOldOf(uuid string) error {
	return os.RemoveAll(filepath.Join(n.config().System.BackupDirectory, uuid))
}

// isNoBackup reports whether berth does not have a backup.
func isNoBackup(err error) bool {
	return errors.Is(err, errNoBackup) || errors.Is(err, v1.ErrBackupNotFound)
}
