package volume

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// projects gives volumes hard limits by project quotas of their file system, XFS or ext4. The
// directory of a volume has a project of its own, which every entry below it inherits. The
// project's number lies in the directory alone; the limit is set again at each start.
//
// A process of a container that owns a folder may clear the flag with which new entries inherit its
// project. What it writes then is found by the soft limit. It cannot give a file to another project,
// whose limit would count it: see the seccomp profile of package docker.
type projects struct {
	base string

	mu     sync.Mutex
	ids    map[string]uint32 // by volume
	limits map[string]int64  // bytes, as this process has set them
	last   uint32            // project that was given last
}

// firstProject is below the numbers of berth's projects. Docker counts its own from 1.
const firstProject = 'b'<<24 | 'e'<<16

// hardSlack is how far the hard limit of n bytes is above the soft one, whose error is clearer.
func hardSlack(n int64) int64 { return n/16 + 16<<20 }

// openProjects reads the projects of the volumes below base, or returns why there are none.
func openProjects(base string) (*projects, error) {
	dir, err := os.Open(base)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if _, err := quotaOf(dir, firstProject); err != nil {
		return nil, fmt.Errorf("the file system of the volumes has no project quotas: mount XFS with pquota, or ext4 with its "+
			"features quota and project and the option prjquota, on Linux 5.14 or newer (%w)", err)
	}
	p := &projects{base: base, ids: map[string]uint32{}, limits: map[string]int64{}, last: firstProject}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	for _, id := range names {
		if checkID(id) == nil {
			p.read(id)
		}
	}
	return p, nil
}

// CheckHardLimits returns why volumes below base cannot have hard limits.
func CheckHardLimits(base string) error {
	_, err := openProjects(base)
	return err
}

// read reads the project of a volume's directory. A directory without one has a soft limit.
func (p *projects) read(id string) {
	if p == nil {
		return
	}
	var a fsxattr
	d, err := openDirectory(filepath.Join(p.base, id))
	if err == nil {
		a, err = attributesOf(d)
		d.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.ids, id)
	delete(p.limits, id)
	if err == nil && a.project > firstProject && a.flags&inheritProject != 0 {
		p.ids[id], p.last = a.project, max(p.last, a.project)
	}
}

// openDirectory opens a directory of the host, which must not be a link.
func openDirectory(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// add gives an empty directory, which is or will be that of the volume, its project, or a new one.
// It does nothing if the host has no project quotas, or the directory has entries: they would not
// be in the project. The caller calls read once the directory has its place.
func (p *projects) add(dir, id string) error {
	if p == nil {
		return nil
	}
	d, err := openDirectory(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Readdirnames(1); !errors.Is(err, io.EOF) {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	project := p.ids[id]
	for project == 0 {
		p.last++
		used, err := quotaOf(d, p.last)
		if err != nil {
			return err
		}
		if used.files == 0 {
			project = p.last
		}
	}
	return setProject(d, project)
}

// join gives the folder of a volume's temporary entries the project of the volume: no entry can be
// renamed into another project.
func (p *projects) join(temps *os.File, id string) error {
	if p == nil {
		return nil
	}
	attr, err := attributesOf(temps)
	if project := p.of(id); err == nil && attr.project != project {
		err = setProject(temps, project)
	}
	return err
}

// of returns the project of a volume; 0 is none.
func (p *projects) of(id string) uint32 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ids[id]
}

// limit sets the hard limit for a soft one; 0 is none.
func (p *projects) limit(id string, bytes int64) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	project := p.ids[id]
	if set, known := p.limits[id]; project == 0 || known && set == bytes {
		return nil
	}
	d, err := os.Open(p.base)
	if err != nil {
		return err
	}
	defer d.Close()
	q := dqblk{valid: limitsValid}
	if bytes > 0 {
		q.hardBlocks = uint64(bytes+hardSlack(bytes)) / 1024
		q.hardFiles = uint64(v1.FilesLimit(bytes + hardSlack(bytes)))
	}
	if err := quotactl(d, setQuota, project, &q); err != nil {
		return err
	}
	p.limits[id] = bytes
	return nil
}

// full reports whether less than a MiB, or no file, is left below the hard limit. The file system
// reports that as a full disk.
func (p *projects) full(id string) bool {
	project := p.of(id)
	if project == 0 {
		return false
	}
	d, err := os.Open(p.base)
	if err != nil {
		return false
	}
	defer d.Close()
	q, err := quotaOf(d, project)
	return err == nil && (q.hardBlocks > 0 && q.bytes+1<<20 > q.hardBlocks*1024 || q.hardFiles > 0 && q.files >= q.hardFiles)
}

// remove forgets a volume that was removed. Its project has no limit any more.
func (p *projects) remove(id string) error {
	err := p.limit(id, 0)
	p.read(id)
	return err
}

// The kernel's structures and numbers, of linux/fs.h and linux/quota.h.
const (
	fsGetXattr     = 0x801c581f // FS_IOC_FSGETXATTR
	fsSetXattr     = 0x401c5820 // FS_IOC_FSSETXATTR
	inheritProject = 0x200      // FS_XFLAG_PROJINHERIT
	projectQuota   = 2          // PRJQUOTA
	getQuota       = 0x800007   // Q_GETQUOTA
	setQuota       = 0x800008   // Q_SETQUOTA
	limitsValid    = 1 | 4      // QIF_BLIMITS, QIF_ILIMITS
)

type fsxattr struct {
	flags, extentSize, extents, project, cowExtentSize uint32
	_                                                  [8]byte
}

type dqblk struct {
	hardBlocks, softBlocks, bytes, hardFiles, softFiles, files, blockTime, fileTime uint64

	valid uint32
	_     uint32
}

func attributesOf(d *os.File) (a fsxattr, err error) {
	return a, ioctl(d, fsGetXattr, &a)
}

// setProject sets the project of a folder, which new entries inherit.
func setProject(d *os.File, project uint32) error {
	a, err := attributesOf(d)
	if err != nil {
		return err
	}
	a.project, a.flags = project, a.flags|inheritProject
	if project == 0 {
		a.flags &^= inheritProject
	}
	return ioctl(d, fsSetXattr, &a)
}

func ioctl(d *os.File, request uintptr, a *fsxattr) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, d.Fd(), request, uintptr(unsafe.Pointer(a)))
	if errno != 0 {
		return os.NewSyscallError("set project", errno)
	}
	return nil
}

// quotaOf returns the usage and the limits of a project.
func quotaOf(d *os.File, project uint32) (q dqblk, err error) {
	err = quotactl(d, getQuota, project, &q)
	if errors.Is(err, syscall.ENOENT) { // XFS: nothing has this project
		return dqblk{}, nil
	}
	return q, err
}

// quotactl calls quotactl_fd(2) for project quotas.
func quotactl(d *os.File, command, project uint32, q *dqblk) error {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, d.Fd(), uintptr(command<<8|projectQuota), uintptr(project),
		uintptr(unsafe.Pointer(q)), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("quotactl", errno)
	}
	return nil
}
