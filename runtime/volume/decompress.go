package volume

import (
	"context"
	"errors"
	"os"

	v1 "berth/api/v1"
	"berth/runtime/volume/archive"
)

// Decompress extracts the archive at path into the folder dest, which it creates if it is
// missing. It detects the format by content. It extracts into a temporary folder
// first, so an archive with one invalid entry leaves nothing, and then moves the
// entries to dest: files replace files and folders are merged. If a file conflicts
// with a folder, nothing is moved. If a move fails, what was moved before stays. On return the
// names are durable, but the contents only once the kernel has written them: an fsync of each file
// would take longer than everything else, and the archive still exists. Unusual entries are left
// out and listed.
func (f Files) Decompress(ctx context.Context, id string, d v1.Decompression) (got v1.Extraction, err error) {
	if d.Archive, err = parseEntry(d.Archive); err != nil {
		return got, err
	}
	if d.Destination, err = parse(d.Destination); err != nil {
		return got, err
	}
	err = f.withVolume(ctx, id, d.Destination, func(vol *openVolume) error {
		f, err := vol.openFile(d.Archive, os.O_RDONLY)
		if err != nil {
			return refuseRead(d.Archive, err)
		}
		defer f.Close()
		if info, err := vol.root.Stat(d.Destination); err == nil && !info.IsDir() {
			return exists(d.Destination)
		}
		return vol.extractInto(d.Destination, func(u *extractor) error {
			info, err := f.Stat()
			if err != nil {
				return err
			}
			got, err = archive.Extract(ctx, f, info.Size(), archive.Options{Limits: archiveLimits(vol.m), Name: d.Archive, Encoding: d.Encoding}, u)
			return err
		})
	})
	return got, err
}

// extractInto calls extract with an extractor into a temporary folder, and moves what it created
// to dest.
func (vol *openVolume) extractInto(dest string, extract func(*extractor) error) error {
	o, err := vol.ownerIn(dest)
	if err != nil {
		return err
	}
	x, err := vol.newTemp(o)
	if err != nil {
		return err
	}
	res := vol.newReservation(0)
	moved := false
	defer func() {
		freed := x.close() // folders that dest has as well
		res.Release()
		if moved {
			vol.quota.Add(-freed)
		}
	}()
	if err := res.Grow(blockBytes); err != nil {
		return err
	}
	stage, err := x.mkdir()
	if err != nil {
		return err
	}
	defer stage.close()
	u := &extractor{vol: vol, reservation: res, dest: dest, stage: stage, owner: o}
	if u.there, err = vol.root.OpenRoot(dest + "/."); err == nil { // otherwise it is missing
		defer u.there.Close()
	}
	err = extract(u)
	if err := errors.Join(err, u.leave(0)); err != nil {
		return err
	}
	freed, err := commitInto(vol, x, stage, dest)
	if err == nil {
		moved = true
		vol.quota.Add(res.Bytes() - freed)
	}
	return err
}
