package volume

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	v1 "berth/api/v1"
	"berth/runtime/volume/configfile"
	"berth/runtime/volume/fsys"
)

// maxConfigs bounds the configuration files of one start and their values together, in bytes:
// nothing ends the work on them before it is done, and a start has a permit meanwhile.
const maxConfigs = 4 << 20

var errConfigs = v1.Errorf(v1.InvalidRequest, "the config files before it and their values have %d KiB already: at most that in all",
	maxConfigs>>10)

// Configure sets the values of the configuration files of a container, and returns the
// error of each. The variables of the values are replaced by those of env, file by file: all at
// once may be large. It creates a file that is missing, and changes nothing if every value is
// set. The file keeps its owner and its mode. Anything but a regular file of at most 512 KiB
// is refused, a link too. The error of a file that cannot be parsed is a v1.Error.
func (m *Manager) Configure(ctx context.Context, id string, files []v1.ConfigFile, env map[string]string) []error {
	errs := make([]error, len(files))
	left := int64(maxConfigs)
	for i, c := range files {
		if c, errs[i] = c.Expanded(env); errs[i] == nil {
			errs[i] = m.configure(ctx, id, c, &left)
		}
	}
	return errs
}

// configure sets the values of one file. It takes the size of the file and of its values from left.
func (m *Manager) configure(ctx context.Context, id string, c v1.ConfigFile, left *int64) error {
	p, err := parseEntry(c.Path)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.change(ctx, id, p, func(vol *Volume) (err error) {
		for range createTries {
			if err = configure(vol, p, c, left); !errors.Is(err, errChanged) {
				break
			}
		}
		return err
	})
}

func configure(vol *Volume, p string, c v1.ConfigFile, left *int64) error {
	dst, base, old, err := vol.locate(p)
	if err != nil {
		return err
	}
	defer dst.Close()
	if old == nil && !c.Creates() {
		return nil
	}
	before, err := readConfig(dst, base, old)
	if err != nil {
		return err
	}
	*left -= int64(len(before))
	change := configfile.Change{Set: c.Set}
	if !c.Appends() {
		change.Lines = configfile.OnlyReplace
	}
	for key, value := range c.Set {
		*left -= int64(len(key) + len(value))
	}
	for _, e := range c.Edits {
		*left -= int64(len(e.Key) + len(e.Value) + len(e.If))
		change.Edits = append(change.Edits, configfile.Edit(e))
	}
	if *left < 0 {
		return errConfigs
	}
	after, err := configfile.Apply(c.Format, before, change)
	if err != nil {
		return v1.Errorf(v1.InvalidRequest, "%s", err)
	}
	if old == nil && len(after) == 0 && c.Format != "text" {
		return nil // an empty file is no document
	}
	if old != nil && bytes.Equal(before, after) {
		return nil
	}
	if err := vol.ctxErr(); err != nil {
		return err
	}
	_, err = vol.replace(dst, base, replacement{old, bytes.NewReader(after), unchanged(old)})
	return err
}

// unchanged returns the check of Write that the file is still the one that was read.
func unchanged(read fs.FileInfo) func(old fs.FileInfo) error {
	return func(old fs.FileInfo) error {
		if v1.FileTag(old) != v1.FileTag(read) {
			return errChanged
		}
		return nil
	}
}

// readConfig reads the file base; old is nil if it is missing.
func readConfig(dst *fsys.Folder, base string, old fs.FileInfo) ([]byte, error) {
	switch {
	case old == nil:
		return nil, nil
	case old.Mode()&fs.ModeSymlink != 0:
		return nil, v1.Errorf(v1.InvalidRequest, "a link is in its place: replace the link by a file")
	case !old.Mode().IsRegular():
		return nil, v1.Errorf(v1.InvalidRequest, "something that is not a file is in its place: remove it")
	}
	file, err := fsys.OpenRegular(dst.Root, base, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, configfile.MaxSize+1)) // Apply refuses a larger one
}
