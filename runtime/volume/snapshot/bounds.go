package snapshot

import v1 "berth/api/v1"

// Bounds end a walk through a tree that grows ahead of it. 0 is no bound.
type Bounds struct {
	Bytes int64 // on disk, that the archive extracts to
	Steps int64 // names that are visited, and folders that are left
}

// step counts a step of the walk, whatever becomes of its entry. It returns the error of the
// context, or that of a bound.
func (x *writer) step() error {
	if x.steps++; x.opt.Bounds.Steps > 0 && x.steps > x.opt.Bounds.Steps {
		return v1.Errorf(v1.SizeLimit, "The volume has too many files for a backup, or got more while it was read: more than %d", x.opt.Bounds.Steps)
	}
	if x.opt.Progress != nil { // also where files are empty
		x.opt.Progress(x.read)
	}
	return x.ctxErr()
}
