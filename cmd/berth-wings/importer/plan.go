package importer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"berth/api/egg"
	v1 "berth/api/v1"
)

// Server is a server of wings, and what an import does with it.
type Server struct {
	UUID, Name string
	Size       int64    // of its folder, in bytes
	Runs       bool     // it is started again
	Imported   bool     // berth has it already
	Refused    error    // why it stays with wings; nil: it is imported
	Notes      []string // what berth does not have of the panel's

	object egg.Server
}

// Plan is what an import does.
type Plan struct {
	Servers []Server
	Left    []string // folders that are no servers of the panel
	Backups int      // archives of wings that stay readable
}

// Plan returns what an import does. Nothing is changed.
func (i *Importer) Plan(ctx context.Context) (p Plan, err error) {
	list, refused, err := i.o.Panel.Servers(ctx)
	if err != nil {
		return p, fmt.Errorf("the panel: %w", err)
	}
	if len(refused) > 0 {
		return p, errors.Join(refused...)
	}
	folders, err := os.ReadDir(i.o.Config.System.Data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	for _, f := range folders {
		if !slices.ContainsFunc(list, func(s egg.Server) bool { return s.UUID == f.Name() }) {
			p.Left = append(p.Left, f.Name())
		}
	}
	for _, object := range list {
		s, err := i.plan(ctx, object)
		if err != nil {
			return p, err
		}
		p.Servers = append(p.Servers, s)
	}
	p.Backups = i.backups()
	return p, nil
}

// plan returns what an import does with one server. It returns an error if that cannot be found out.
func (i *Importer) plan(ctx context.Context, object egg.Server) (s Server, err error) {
	s = Server{UUID: object.UUID, Name: object.Name, object: object}
	_, s.Notes = object.Spec(i.o.Node.Host(), nil)
	v, err := i.volume(ctx, s.UUID)
	if err != nil {
		return s, fmt.Errorf("berth: %w", err)
	}
	begun := v != nil && v.Labels[Label] != ""
	info, err := os.Lstat(i.folder(s.UUID))
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case err != nil && !missing:
		return s, err
	case missing && v != nil && !begun:
		s.Imported = true
		return s, nil
	case missing && v == nil:
		s.Refused = fmt.Errorf("%s is missing: the panel installs it anew", i.folder(s.UUID))
		return s, nil
	case missing:
	case v != nil && !begun:
		s.Refused = fmt.Errorf("it has a volume of berth and %s: end `berth-wings import --undo %s`, or remove the one that is not needed",
			i.folder(s.UUID), s.UUID)
		return s, nil
	case !info.IsDir():
		s.Refused = fmt.Errorf("%s is not a folder: move the files there, with their owners", i.folder(s.UUID))
		return s, nil
	}
	if err := i.use(ctx, &s, v); err != nil {
		return s, err
	}
	return s, nil
}

// use completes the plan of a server that has files.
func (i *Importer) use(ctx context.Context, s *Server, v *v1.VolumeView) (err error) {
	folder := i.folder(s.UUID)
	installs, err := i.engine.runs(ctx, s.UUID+"_installer")
	if err != nil {
		return err
	}
	if s.Runs, err = i.engine.runs(ctx, s.UUID); err != nil {
		return err
	}
	switch {
	case installs:
		s.Refused = errors.New("it is being installed: wait until that ends")
	case i.o.Config.System.Quotas.Enabled:
		s.Refused = fmt.Errorf("system.quotas is enabled: clear the project of its files by `chattr -R -P -p 0 %s`, and then disable it", folder)
	}
	if v != nil {
		if v.Labels[Label] != "" {
			s.Runs = v.Labels[Label] == ran // as it did before it was stopped
		}
		if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
			folder = v.Path
		}
	}
	s.Size, err = sizeOf(ctx, folder)
	return err
}

// sizeOf returns the bytes that the files of a folder occupy. It leaves out files that are removed meanwhile.
func sizeOf(ctx context.Context, folder string) (size int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var info fs.FileInfo
		if err == nil {
			info, err = e.Info()
		}
		if err == nil {
			size += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return size, err
}

// backups counts the archives that wings has made: in one folder, or in one for each server.
func (i *Importer) backups() (count int) {
	for _, pattern := range []string{"*.tar.gz", "*/*.tar.gz"} {
		found, _ := filepath.Glob(filepath.Join(i.o.Config.System.BackupDirectory, pattern)) // the pattern is valid
		count += len(found)
	}
	return count
}

// sameMount returns an error unless a folder can be renamed to another place.
func sameMount(from, to string) error {
	var a, b unix.Statx_t
	for path, st := range map[string]*unix.Statx_t{from: &a, to: &b} {
		if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, st); err != nil {
			return &os.PathError{Op: "statx", Path: path, Err: err}
		}
	}
	if a.Dev_major != b.Dev_major || a.Dev_minor != b.Dev_minor || a.Mnt_id != b.Mnt_id {
		return fmt.Errorf("%s is on another file system or mount than %s: set storage.volumes_path of berth to a folder on that of wings, and "+
			"restart berth",
			to, from)
	}
	return nil
}
