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
// The error of a file that cannot be parsed is a v1.Error.
func (f Files) Configure(ctx context.Context, id string, c v1.ConfigFile) error {
	p, err := cleanEntry(c.Path)
	if err != nil {
		return err
	}
	select {
	case f.m.configuring <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.m.configuring }()
	return f.withVolume(ctx, id, p, func(vol *openVolume) error { return configure(vol, p, c) })
}

func configure(vol *openVolume, p string, c v1.ConfigFile) error {
	dst, base, old, err := vol.locate(p)
	if err != nil {
		return err
	}
	defer dst.close()
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
	content, err := io.ReadAll(io.LimitReader(file, configfile.MaxSize+1))
	if err == nil && len(content) > configfile.MaxSize { // it has grown
		err = errConfigSize
	}
	return content, err
}

var errConfigSize = v1.Errorf(v1.InvalidRequest, "the file is larger than 4 MiB")
