package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// The records of members that are no entries.
const (
	removeRecord = "BERTH.remove" // the path of an entry that the tree lacks
	sumRecord    = "BERTH.sha256" // of the content of the member before it
)

// offsetRecord is a record of a member that is a part of a file, whose parts before it were sent: where it begins.
const offsetRecord = "BERTH.offset"

// A file that is larger than partBytes is sent in parts: the first is a file of its own, and those after it are appended. So a file
// arrives whatever one connection carries. The access time of a file that has arrived is the round in which it was
// sent, and that of one that lacks parts is by incomplete later.
const (
	partBytes  = 4 << 20
	incomplete = time.Nanosecond
)

// SendOptions are the options of Send.
type SendOptions struct {
	v1.SendOptions
	NameBytes int64  // bytes of memory for names
	Bounds    Bounds // beyond them, Send fails
}

// resentOverhead is the memory of a file in sender.resent besides its path, in bytes.
const resentOverhead = 96

// errMost ends a walk after SendOptions.Most.
var errMost = errors.New("the time is over")

// Send writes to w what another tree with this listing needs to become equal to the tree below root, for
// Receive: a tar.zst of the entries that differ, each folder before what is in it, and of the paths that are to
// be removed. Others may change the tree meanwhile: then the next call sends what has changed.
func Send(ctx context.Context, root *os.Root, listing io.Reader, w io.Writer, opt SendOptions) (sent v1.Sent, err error) {
	err = WithPriority(opt.Priority, func() error {
		sent, err = send(ctx, root, listing, w, opt)
		return err
	})
	return sent, err
}

func send(ctx context.Context, root *os.Root, listing io.Reader, w io.Writer, opt SendOptions) (v1.Sent, error) {
	there, err := openListing(listing)
	if err != nil {
		return v1.Sent{}, err
	}
	defer there.close()
	x := &sender{opt: opt, there: there, resent: map[string]bool{}, list: newLister(opt.NameBytes),
		writer: &writer{ctx: ctx.Err, buf: make([]byte, copyBytes), sum: sha256.New()}}
	x.writer.opt.Bounds, x.writer.opt.Written = opt.Bounds, opt.Written
	if opt.Progress != nil {
		x.writer.opt.Progress = func(bytes, _ int64) { opt.Progress(bytes) }
	}
	x.members = x.parts
	x.list.emit, x.list.left = x.entry, x.left
	err = x.archive(w, func() error {
		err := x.list.walk(ctx, root)
		if errors.Is(err, errMost) {
			x.sent.Partial, err = true, nil
		}
		return err
	})
	x.sent.Bytes, x.sent.Tree = x.result.Size, x.list.sum()
	return x.sent, err
}

// sender compares two trees and sends what differs.
type sender struct {
	*writer
	opt    SendOptions
	list   *lister
	there  *cursor
	at     []*tar.Header   // the folders from the root to the current one; nil: it was sent
	from   int64           // where the current file goes on
	began  time.Time       // when the first entry was sent
	resent map[string]bool // files with several hard links: those links are sent again too
	sent   v1.Sent
}

// entry compares an entry with that of the other tree, and sends it if it differs: a folder that does not differ
// before the first entry of it that does.
func (x *sender) entry(e fsys.Entry, h *tar.Header, line []byte) error {
	p := e.Path()
	if err := x.addApparent(block); err != nil { // also of entries that do not differ: others may move them ahead of the walk
		return err
	}
	if err := x.drain(func(other string) bool { return comparePaths(other, p) < 0 }); err != nil {
		return err
	}
	same, there := false, item{}
	if !x.there.over && string(x.there.now.Path) == p {
		same, there = x.there.is(line), x.there.now
		if err := x.pass(h.Typeflag == tar.TypeDir); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		x.at = append(x.at, h)
		if same {
			return nil
		}
		x.sent.Entries++
		return x.sendFolders()
	case tar.TypeLink:
		same = same && !x.resent[h.Linkname]
	case tar.TypeReg:
		same = same && !changedSince(e.Info, x.opt.Since)
		x.from = 0
		switch {
		case x.opt.Round.IsZero() || there.Type != tar.TypeReg:
		case there.round == x.opt.Round.UnixNano():
			same = true // whatever it looks like: the next round sends what has changed since this one began
		case there.round == x.opt.Round.Add(incomplete).UnixNano():
			x.from = max(0, min(there.Size, h.Size)-1) / partBytes * partBytes // the last part that is there may not be complete
		}
	}
	if same {
		return nil
	}
	if !x.opt.Until.IsZero() && changedSince(e.Info, x.opt.Until) {
		x.sent.Left += h.Size
		return nil
	}
	return x.send(e, h)
}

func (x *sender) sendFolders() error {
	for i, h := range x.at {
		if h != nil {
			x.at[i] = nil
			if err := x.add(h, block); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends an entry that is no folder.
func (x *sender) send(e fsys.Entry, h *tar.Header) error {
	if x.began.IsZero() {
		x.began = time.Now()
	} else if x.over() {
		return errMost
	}
	if err := x.sendFolders(); err != nil {
		return err
	}
	x.sent.Entries++
	switch h.Typeflag {
	case tar.TypeLink:
		return x.add(h, 0)
	case tar.TypeSymlink:
		return x.add(h, block)
	}
	p := e.Path()
	if fsys.Stat(e.Info).Nlink > 1 {
		if x.list.names.Free -= int64(len(p)) + resentOverhead; x.list.names.Free < 0 {
			return v1.Errorf(v1.SizeLimit, "The volume has too many files with several hard links")
		}
		x.resent[p] = true
	}
	if err := x.file(e, p); err != nil {
		return err
	}
	for _, s := range x.result.Skipped {
		if s.Reason == v1.SkippedUnreadable {
			return v1.Errorf(v1.InvalidRequest, "%s cannot be read", s.Path)
		}
	}
	x.result.Skipped = x.result.Skipped[:0]
	return nil
}

// over reports whether the time for entries is over.
func (x *sender) over() bool { return x.opt.Most > 0 && time.Since(x.began) > x.opt.Most }

// parts adds the parts of a regular file that are missing, each with its checksum.
func (x *sender) parts(f *os.File, h *tar.Header) (failed, err error) {
	if x.from > h.Size {
		x.from = 0
	}
	if _, err := f.Seek(x.from, io.SeekStart); err != nil {
		return nil, err
	}
	for off := x.from; ; off += partBytes {
		part := *h
		part.Size, part.AccessTime = min(partBytes, h.Size-off), x.opt.Round
		if off > 0 {
			part.PAXRecords = map[string]string{offsetRecord: strconv.FormatInt(off, 10)}
		}
		last := off+part.Size == h.Size
		if !last && !x.opt.Round.IsZero() {
			part.AccessTime = x.opt.Round.Add(incomplete)
		}
		if err := x.add(&part, block); err != nil {
			return nil, err
		}
		x.sum.Reset()
		failed, err = x.content(f, part.Size)
		if err != nil || failed != nil && !errors.Is(failed, io.EOF) {
			return failed, err
		}
		if err := x.record(sumRecord, checksum(x.sum)); err != nil || last {
			return failed, err
		}
		if off > x.from && x.over() { // the first one may have been there
			return failed, errMost
		}
	}
}

// left sends the paths that the other tree has beyond the entries of a folder.
func (x *sender) left(e fsys.Entry) error {
	p := e.Path()
	err := x.drain(func(other string) bool { return p == rootPath || strings.HasPrefix(other, p+"/") })
	x.at = x.at[:len(x.at)-1]
	return err
}

// drain sends as removed the paths of the other tree, from the current one, for which extra returns true: entries that the
// current folder lacks.
func (x *sender) drain(extra func(string) bool) error {
	for !x.there.over && extra(string(x.there.now.Path)) {
		if err := x.sendFolders(); err != nil {
			return err
		}
		x.sent.Entries++
		if err := errors.Join(x.record(removeRecord, string(x.there.now.Path)), x.pass(false)); err != nil {
			return err
		}
	}
	return nil
}

// pass goes on in the other listing, within a folder or behind everything that is in it.
func (x *sender) pass(within bool) error {
	prefix := string(x.there.now.Path) + "/"
	for {
		if at := x.there.now; at.round != 0 && time.Unix(0, at.round).Sub(x.opt.Round).Abs() <= incomplete {
			x.sent.Arrived += 1 + at.Size
		}
		if err := x.there.next(); err != nil {
			return err
		}
		if within || x.there.over || !strings.HasPrefix(string(x.there.now.Path), prefix) {
			return nil
		}
	}
}

// record writes a member that is no entry.
func (x *sender) record(name, value string) error {
	return x.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Format: tar.FormatPAX, PAXRecords: map[string]string{name: value}})
}
