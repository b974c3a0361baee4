package fsys

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// EachExtent calls f for the parts of file, up to size, that have data; between them are holes. A
// part has at most 64 MiB, so that f can check its context often. A file system without holes has
// one extent.
func EachExtent(file *os.File, size int64, f func(off, n int64) error) error {
	const most = 64 << 20
	for off := int64(0); off < size; {
		begin, err := file.Seek(off, unix.SEEK_DATA)
		switch {
		case errors.Is(err, syscall.ENXIO): // holes up to the end
			return nil
		case err != nil:
			begin = off
		}
		end, err := file.Seek(begin, unix.SEEK_HOLE)
		if err != nil {
			end = size
		}
		end = min(end, size)
		for off = max(end, off+1); begin < end; begin += most {
			if err := f(begin, min(end-begin, most)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Holes returns the bytes of holes of a file, and moves its position. What a file system has compressed or
// preallocated is no hole. An error of check ends it.
func Holes(file *os.File, info fs.FileInfo, check func() error) (holes int64, err error) {
	allocated := Stat(info).Blocks * 512
	if info.Size() <= allocated {
		return 0, nil
	}
	holes = info.Size()
	err = EachExtent(file, info.Size(), func(_, n int64) error {
		holes -= n
		return check()
	})
	return min(holes, info.Size()-allocated), err
}
