package volume

import (
	"bytes"
	"context"
	"io"
	"io/fs"

	v1 "berth/api/v1"
	"berth/runtime/volume/configfile"
)

// Configure sets the values of a configuration file of a container. It creates a file
// that is missing, and changes nothing if every value is set. The file keeps its owner
// and its mode. Anything but a regular file of at most 4 MiB is refused, a link too.
// The error is runtime.ErrConfigBusy if other large files are parsed. The error of a file that cannot be parsed is a v1.Error.
func (f Files) Configure(ctx context.Context, id string, c v1.ConfigFile) error {
	p, err := cleanEntry(c.Path)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.withVolume(ctx, id, p, func(vol *openVolume) error { return configure(ctx, vol, p, c) })
}

func configure(ctx context.Context, vol *openVolume, p string, c v1.ConfigFile) error {
	dst, base, old, err := vol.locate(p)
	if err != nil {
		return err
	}
	defer dst.close()
	size := sizeOfValues(c)
	if old != nil {
		size += old.Size()
	}
	leave, err := vol.m.configuring.enter(ctx, size)
	if err != nil {
		return err
	}
	defer leave()
	before, err := readConfig(dst, base, old)
	if err != nil {
		return err
	}
	after, err := configfile.Apply(c.Format, before, c.Set)
	if err != nil {
		return v1.Errorf(v1.InvalidRequest, "%s", err)
	}
	if old != nil && bytes.Equal(before, after) {
		return nil
	}
	if err := vol.ctxErr(); err != nil {
		return err
	}
	top, err := vol.top()
	if err != nil {
		return err
	}
	defer top.close()
	x := vol.newTemp()
	x.like = old
	return replace(x, top, dst, base, old, bytes.NewReader(after))
}

func sizeOfValues(c v1.ConfigFile) (size int64) {
	for key, value := range c.Set {
		size += int64(len(key) + len(value))
	}
	return size
}

// readConfig reads the file base; old is nil if it is missing.
func readConfig(dst *folder, base string, old fs.FileInfo) ([]byte, error) {
	switch {
	case old == nil:
		return nil, nil
	case old.Mode()&fs.ModeSymlink != 0:
		return nil, v1.Errorf(v1.InvalidRequest, "a link is in its place: replace the link by a file")
	case !old.Mode().IsRegular():
		return nil, v1.Errorf(v1.InvalidRequest, "something that is not a file is in its place: remove it")
	case old.Size() > configfile.MaxSize:
		return nil, errConfigSize
	}
	file, err := dst.dir.OpenRegular(base)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	limit := int64(configfile.MaxSize)
	if old.Size() <= smallConfig {
		limit = smallConfig // it did not wait as a large one does
	}
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = errConfigGrows
	}
	return content, err
}

var errConfigGrows = v1.Errorf(v1.InvalidRequest, "the file grows while it is read")

var errConfigSize = v1.Errorf(v1.InvalidRequest, "the file is larger than 4 MiB")
