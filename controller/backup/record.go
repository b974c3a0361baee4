package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// change changes the status of a backup in an update.
type change func(tx *store.Tx, s *v1.BackupStatus, now time.Time) error

// record stores a changed status of a backup.
func record(db *store.Store, b v1.Backup, fn change) error {
	return db.MustUpdate(func(tx *store.Tx) (err error) {
		setErr := store.Backups.SetStatus(tx, b.Meta.ID, func(s *v1.BackupStatus) { err = fn(tx, s, tx.Now()) })
		if err != nil {
			return err
		}
		return setErr
	})
}

// hostPath matches an absolute path within a message.
var hostPath = regexp.MustCompile(`(^|[\s"'(=])/[^\s:"')]+`)

// failureText returns why a job failed, for clients: without paths of the host.
func failureText(err error) string {
	var refusal *v1.Error
	switch {
	case err == nil:
		return "The job failed"
	case errors.As(err, &refusal):
		return refusal.Message
	case errors.Is(err, context.Canceled):
		return "The job was cancelled"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "No space is left on the host"
	}
	return v1.MessageText(hostPath.ReplaceAllString(plainText(err), "$1…"))
}

// plainText returns the text of an error, of a failed system call in it without its path.
// Of several errors it is the first.
func plainText(err error) string {
	var path *fs.PathError
	var link *os.LinkError
	text, _, _ := strings.Cut(err.Error(), "\n")
	switch {
	case errors.As(err, &path):
		return strings.Replace(text, path.Error(), path.Op+": "+path.Err.Error(), 1)
	case errors.As(err, &link):
		return strings.Replace(text, link.Error(), link.Op+": "+link.Err.Error(), 1)
	}
	return text
}
