package volume

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/runtime/volume/configfile"
)

// Configure sets the values of the configuration files of a container, and returns the
// error of each. The variables of the values are replaced by those of env, file by file: all at
// once may be large. It creates a file that is missing, and changes nothing if every value is
// set. The file keeps its owner and its mode. Anything but a regular file of at most 512 KiB
// is refused, a link too. The error of a file that cannot be parsed is a v1.Error. The
// second result is runtime.ErrConfigBusy if it is the turn of other volumes to have large
// files parsed: it is this one's soon if the caller asks again each second.
func (f Files) Configure(ctx context.Context, id string, files []v1.ConfigFile, env map[string]string) ([]error, error) {
	t := f.m.configuring.of(id)
	defer t.end()
	errs := make([]error, len(files))
	for i, c := range files {
		if c, errs[i] = c.Expanded(env); errs[i] == nil {
			errs[i] = f.configure(ctx, t, c)
		}
		if errors.Is(errs[i], runtime.ErrConfigBusy) {
			return nil, errs[i]
		}
	}
	return errs, nil
}

func (f Files) configure(ctx context.Context, t *turn, c v1.ConfigFile) error {
	p, err := cleanEntry(c.Path)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.withVolume(ctx, t.volume, p, func(vol *openVolume) error { return configure(t, vol, p, c) })
}

func configure(t *turn, vol *openVolume, p string, c v1.ConfigFile) error {
	dst, base, old, err := vol.locate(p)
	if err != nil {
		return err
	}
	defer dst.close()
	size := sizeOfValues(c)
	if old != nil {
		size += old.Size()
	}
	if err := t.begin(size); err != nil {
		return err
	}
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
		limit = smallConfig // it did not wait for a turn as a large one does
	}
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = errConfigGrows
	}
	return content, err
}

var errConfigGrows = v1.Errorf(v1.InvalidRequest, "the file grows while it is read")

var errConfigSize = v1.Errorf(v1.InvalidRequest, "the file is larger than 512 KiB")
