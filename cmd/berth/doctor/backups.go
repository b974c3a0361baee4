package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/blob"
)

// checkBackups checks the targets of backups. It writes nothing: it asks for the access
// to the directory, and for the unfinished uploads of the bucket.
func checkBackups(ctx context.Context, e *examination) Result {
	c := e.Config.Config.Backups
	directory := checkBackupPath(e.path(c.Path))
	if directory.Status == OK {
		directory.Message += "; " + pace(c)
	}
	if directory.Status == Fail || !c.S3.Enabled() {
		return directory
	}
	if bucket := checkBucket(ctx, c.S3); bucket.Status != OK || directory.Status == OK {
		return bucket
	}
	return directory
}

// pace describes how many backups run at once, and how fast.
func pace(c v1.BackupsConfig) string {
	if c.Bandwidth == 0 {
		return fmt.Sprintf("%d at once, without a limit of the bandwidth", c.Concurrency)
	}
	return fmt.Sprintf("%d at once, %s per second", c.Concurrency, c.Bandwidth)
}

func checkBackupPath(path string) Result {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ok(path + " does not exist yet: the first backup creates it")
	case err != nil:
		return warning(err.Error(), "run berth doctor as root, or as the user of the daemon")
	case !info.IsDir():
		return failed(path+" is not a directory", "remove it, or set backups.path to a directory")
	case errors.Is(unix.Access(path, unix.W_OK|unix.X_OK), unix.EROFS):
		return failed(path+" is on a read-only file system", "mount it writable, or set backups.path to another directory")
	case unix.Access(path, unix.R_OK|unix.W_OK|unix.X_OK) != nil:
		return warning(path+" is not writable for this user", "run berth doctor as root, or as the user of the daemon")
	case info.Mode().Perm()&0o077 != 0:
		return warning(fmt.Sprintf("%s is open to other users (mode %04o)", path, info.Mode().Perm()), "run chmod 700 on it")
	}
	return ok(path + " is writable")
}

func checkBucket(ctx context.Context, c v1.S3Config) Result {
	target, err := blob.NewS3(blob.S3Options{Endpoint: c.Endpoint, Region: c.Region, Bucket: c.Bucket, Prefix: c.Prefix,
		AccessKey: c.AccessKey, SecretKey: c.SecretKey.Reveal(), PathStyle: c.PathStyle})
	if err == nil {
		err = target.Reach(ctx)
	}
	if err != nil {
		return failed(fmt.Sprintf("the bucket %s at %s cannot be used: %v", c.Bucket, c.Endpoint, err),
			"check backups.s3, the bucket, what its key may do (hack/docs/backups.md), and the host's firewall")
	}
	return ok(fmt.Sprintf("the bucket %s at %s answers", c.Bucket, c.Endpoint))
}
