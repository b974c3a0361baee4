package volume

import (
	"os"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/snapshot"
	"berth/runtime/volume/walk"
)

// The slack of the bounds of a backup, for files that are replaced while it reads a volume, and
// for hard links, which no limit counts.
const (
	bytesSlack  = 64 << 20 // beside a quarter
	stepsFactor = 8
	stepsSlack  = 8 << 20
)

// boundsOf returns the bounds of a backup. A volume without a limit has those of its file
// system: its size, and twice the inodes that are in use now.
func boundsOf(top *walk.Dir, limit int64) (b snapshot.Bounds, err error) {
	var st unix.Statfs_t
	if limit == 0 {
		if err := unix.Fstatfs(int(top.File().Fd()), &st); err != nil {
			return b, os.NewSyscallError("statfs", err)
		}
		limit = int64(st.Blocks) * int64(st.Bsize)
	}
	b.Bytes = limit + limit/4 + bytesSlack
	b.Steps = stepsFactor * v1.FilesLimit(b.Bytes)
	if st.Files > st.Ffree {
		b.Steps = 2*int64(st.Files-st.Ffree) + stepsSlack
	}
	return b, nil
}
