package backup

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"syscall"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// received is what an extractor needs for Receive.
type received struct {
	sum   hash.Hash    // of the content of the current file
	place func() error // gives that file its name; nil: no file waits for its checksum
}

// arriving begins the names of files that are not complete. What a kill leaves of them is not in the tree of
// the sender, which has it removed.
const arriving = ".berth-arriving-"

// Receive changes the tree in the folder into as Send has written it to r. No file is seen before it is complete and
// its checksum is right. Nobody else may change the tree. most bounds the bytes on disk that it writes. After an error
// the entries that were complete stay. What it has written is not durable yet.
func Receive(ctx context.Context, r io.Reader, most int64, into *os.Root, opt ExtractOptions) error {
	return WithPriority(opt.Priority, func() error {
		x, err := newExtractor(ctx, r, v1.SnapshotArchive{Size: math.MaxInt64, Bytes: most}, into, opt)
		if err != nil {
			return err
		}
		x.received = &received{sum: sha256.New()}
		defer x.close()
		if err := x.members(); err != nil {
			return err
		}
		if x.received.place != nil {
			return damaged("the last file has no checksum")
		}
		if x.bytes == 0 { // nothing was sent, so that the root folder has no attributes
			return nil
		}
		return x.leaveAll()
	})
}

// receivedRecord carries out a member that is no entry. It returns false for one that is.
func (x *extractor) receivedRecord(h *tar.Header) (is bool, err error) {
	if x.received == nil {
		return false, nil
	}
	place := x.received.place
	if sum := h.PAXRecords[sumRecord]; h.Typeflag == tar.TypeXGlobalHeader && sum != "" {
		if place == nil || sum != checksum(x.received.sum) {
			return true, damaged("a file has another checksum")
		}
		x.received.place = nil
		return true, place()
	}
	if place != nil {
		return true, damaged("a file has no checksum")
	}
	p, is := h.PAXRecords[removeRecord]
	if h.Typeflag != tar.TypeXGlobalHeader || !is {
		return false, nil
	}
	if !validPath(p) || p == rootPath {
		return true, damaged("%q is to be removed", shorten(p))
	}
	in, name, err := x.enter(&tar.Header{Name: p})
	if err != nil {
		return true, err
	}
	return true, in.RemoveAll(name)
}

// part writes a part of a file behind those before it. The sender goes on with the last part that is there, so that a
// part without its checksum is replaced.
func (x *extractor) part(in *fsys.Folder, name string, h *tar.Header, offset string) error {
	n, err := strconv.ParseUint(offset, 10, 63)
	if err != nil {
		return damaged("a part begins at %q", shorten(offset))
	}
	off := int64(n)
	f, err := fsys.OpenRegular(in.Root, name, os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < off {
		return damaged("a part of %q is missing", shorten(h.Name))
	}
	if err := f.Truncate(off); err != nil {
		return err
	}
	x.received.sum.Reset()
	if err := errors.Join(x.content(f, off, h.Size), own(f, attributesOf(h))); err != nil {
		return err
	}
	return x.finish(func() error { return in.Chtimes(name, h.AccessTime, h.ModTime) })
}

// place returns the name under which an entry is created, and what gives it its name once it is complete. An
// entry that has the name is replaced.
func (x *extractor) place(in *fsys.Folder, name string) (temp string, place func() error) {
	if x.received == nil {
		return name, func() error { return nil }
	}
	var b [16]byte
	rand.Read(b[:]) // never fails, as its documentation says
	temp = arriving + hex.EncodeToString(b[:])
	x.received.sum.Reset()
	return temp, func() error {
		err := in.RenameTo(temp, in, name, 0)
		if fsys.Is(err, syscall.EISDIR, syscall.EEXIST, syscall.ENOTEMPTY) {
			err = errors.Join(in.RemoveAll(name), in.RenameTo(temp, in, name, 0))
		}
		if err == nil { // the same file under both names: rename does nothing
			err = fsys.IgnoreMissing(in.Remove(temp))
		}
		return err
	}
}

// finish gives a complete file its name: with Receive once its checksum has arrived.
func (x *extractor) finish(place func() error) error {
	if x.received == nil {
		return place()
	}
	x.received.place = place
	return nil
}

// enterOrReplace opens the folder name, in the place of whatever has the name.
func enterOrReplace(in *fsys.Folder, name string) (*fsys.Folder, error) {
	info, err := in.Lstat(name)
	if err == nil && info.IsDir() {
		return in.Enter(name, info)
	}
	if err = errors.Join(err, in.Remove(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return in.MakeFolder(name)
}
