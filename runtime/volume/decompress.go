package volume

import (
	"context"

	"berth/runtime/volume/archive"
	"berth/runtime/volume/quota"
	"berth/runtime/volume/walk"
)

// Decompress extracts the archive at path into the folder dest, which it creates if it is
// missing. It detects the format by content. It extracts into a temporary folder
// first, so an archive with one invalid entry leaves nothing, and then moves the
// entries to dest: files replace files and folders are merged. If a file conflicts
// with a folder, nothing is moved. On return the names are durable, but the
// contents only once the kernel has written them: an fsync of each file would take
// longer than everything else, and the archive still exists.
func (f Files) Decompress(ctx context.Context, id, path, dest string) error {
	path, err := cleanEntry(path)
	if err != nil {
		return err
	}
	dest, err = clean(dest)
	if err != nil {
		return err
	}
	return f.withVolume(ctx, id, dest, func(vol *openVolume) error { return vol.decompress(ctx, path, dest) })
}

func (vol *openVolume) decompress(ctx context.Context, path, dest string) error {
	f, err := openRegular(vol.root, path)
	if err != nil {
		return refuseRead(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info, err := vol.root.Stat(dest); err == nil && !info.IsDir() {
		return exists(dest)
	}
	x, err := vol.newTemp()
	if err != nil {
		return err
	}
	res := vol.newReservation(0)
	// After a merge the temporary folder has the files that were replaced.
	moved := false
	defer func() {
		freed := x.close()
		res.Release()
		if moved {
			vol.quota.Add(-freed)
		}
	}()
	if err := res.Grow(quota.Block); err != nil {
		return err
	}
	stage, err := x.mkdir()
	if err != nil {
		return err
	}
	defer stage.close()
	at, err := walk.NewStack(stage.dir)
	if err != nil {
		return err
	}
	defer at.Close()
	u := &extractor{vol: vol, reservation: res, dest: dest, stage: stage.root, at: at}
	if err := archive.Extract(ctx, f, info.Size(), archiveLimits(vol.m), u); err != nil {
		return err
	}
	if err := u.leave(0); err != nil {
		return err
	}
	if err := commitInto(vol, x, stage, dest); err != nil {
		return err
	}
	moved = true
	vol.quota.Add(res.Bytes())
	return nil
}
