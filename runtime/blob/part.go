package blob

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// The refusals of PutPart.
var (
	ErrNoPart = errors.New("the part does not begin where the stored ones end")
	ErrOther  = errors.New("the archive is not the one that was announced")
)

// sumPrefix begins the names of files with the state of the checksum of a file that is not complete.
const sumPrefix = ".sum-"

// saveBytes is after how many bytes PutPart saves what it has stored: a kill loses no more.
const saveBytes = 16 << 20

// Part is a part of an archive that arrives in several calls of PutPart.
type Part struct {
	Key      string
	Offset   int64  // where it begins: 0, or what Stored returns
	Size     int64  // of the archive
	Checksum string // of the archive: "sha256:" and 64 hexadecimal digits
}

// Stored returns how many bytes PutPart has stored of an archive that is not complete.
func (d *Directory) Stored(key string) int64 {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return 0
	}
	defer root.Close()
	a := incomplete{root: root, key: key}
	a.load()
	return a.size
}

// PutPart stores content, to its end. Bytes that came before an error of content or of ctx stay until Delete or Abort.
// The archive is visible once it is complete and durable. The error is ErrNoPart if the part does not begin where the
// stored ones end, and ErrOther if the archive has another size or checksum: then nothing of it stays.
func (d *Directory) PutPart(ctx context.Context, p Part, content io.Reader) error {
	if err := checkKey(p.Key); err != nil {
		return err
	}
	root, err := d.makeRoot()
	if err != nil {
		return err
	}
	defer root.Close()
	a := incomplete{root: root, key: p.Key}
	if p.Offset > 0 {
		a.load()
	}
	if a.size != p.Offset {
		return ErrNoPart
	}
	if err := a.append(ctx, content, p.Size); err != nil || a.size < p.Size {
		return err
	}
	if a.size > p.Size || fmt.Sprintf("sha256:%x", a.hash.Sum(nil)) != p.Checksum {
		return errors.Join(ErrOther, remove(root, partPrefix+p.Key, sumPrefix+p.Key))
	}
	if err := root.Rename(partPrefix+p.Key, p.Key); err != nil {
		return err
	}
	return remove(root, sumPrefix+p.Key) // which makes the name of the archive durable
}

// incomplete is an archive that is not complete.
type incomplete struct {
	root *os.Root
	key  string
	size int64     // bytes of its file that are stored
	hash hash.Hash // of these; nil: none are
}

// load finds what is stored. A checksum or a file that is damaged counts as nothing.
func (a *incomplete) load() {
	saved, err := a.root.ReadFile(sumPrefix + a.key)
	if err != nil || len(saved) < 8 {
		return
	}
	size, sum := int64(binary.BigEndian.Uint64(saved)), sha256.New()
	info, err := a.root.Stat(partPrefix + a.key)
	if err == nil && info.Size() >= size && sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(saved[8:]) == nil {
		a.size, a.hash = size, sum
	}
}

// append adds what content returns, until it is larger than most.
func (a *incomplete) append(ctx context.Context, content io.Reader, most int64) error {
	f, err := a.root.OpenFile(partPrefix+a.key, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return unwritable(err)
	}
	defer f.Close()
	if a.hash == nil {
		a.hash = sha256.New()
	}
	_, err = f.Seek(a.size, io.SeekStart)
	if err = errors.Join(err, f.Truncate(a.size)); err != nil {
		return unwritable(err)
	}
	buf, saved := make([]byte, 256<<10), a.size
	for a.size <= most {
		n, failed := content.Read(buf)
		if _, err := f.Write(buf[:n]); err != nil { // the saved part stays
			return err
		}
		a.hash.Write(buf[:n])
		a.size += int64(n)
		failed = cmp.Or(ctx.Err(), failed)
		if failed != nil || a.size-saved >= saveBytes {
			saved = a.size
			if err := a.save(f); err != nil {
				return errors.Join(failed, err)
			}
		}
		if errors.Is(failed, io.EOF) {
			return nil
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// save makes the content of the file durable, and then records it.
func (a *incomplete) save(f *os.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	sum, err := a.hash.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return err
	}
	return a.root.WriteFile(sumPrefix+a.key, append(binary.BigEndian.AppendUint64(nil, uint64(a.size)), sum...), 0o600)
}
