package server

import (
	"context"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// fetchTimeout bounds how long a target may take to open an archive.
const fetchTimeout = 10 * time.Second

// archiveType is the media type of an archive.
const archiveType = "application/zstd"

// download answers with the archive of a backup, with the part of it that Range
// selects, or with the URL of an object in S3.
func (s backups) download(c *call) error {
	var b v1.Backup
	err := s.store.View(func(tx *store.Tx) (err error) {
		b, err = c.findBackup(tx)
		return err
	})
	switch {
	case err != nil:
		return err
	case v1.BackupStateOf(b) != v1.JobCompleted:
		return v1.ErrNotCompleted
	case s.archives == nil:
		return edge.ErrUnavailable
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	key := v1.ArchiveKey(b.Meta.ID)
	file, url, err := s.archives.Fetch(ctx, b.Spec.Target, key, key)
	if err != nil {
		return err
	}
	if url != "" {
		c.Set(fiber.HeaderCacheControl, "no-store")
		return c.Redirect(url, fiber.StatusFound)
	}
	done, err := s.sessions.beginDownload(c, onVolumeOf(b.Spec.VolumeID))
	if err != nil {
		file.Close()
		return err
	}
	tag := strings.TrimPrefix(b.Status.Checksum, "sha256:")
	return edge.SendFile(c.Ctx, file, edge.Download{Name: key, Type: archiveType, Tag: tag}, done)
}
