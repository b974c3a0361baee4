package archive

import (
	"slices"

	v1 "berth/api/v1"
)

// Skip is an error of a Destination that cannot hold an entry. The extraction goes on.
type Skip struct {
	Reason string // one of those of v1.Extraction
}

// Error implements error.
func (s *Skip) Error() string { return "the entry is skipped: " + s.Reason }

// skip counts an entry that is left out, and lists the first ones.
func (x *extraction) skip(name, reason string) error {
	if err := x.count(); err != nil {
		return err
	}
	x.list(name, reason)
	return nil
}

func (x *extraction) list(name, reason string) {
	x.result.SkippedTotal++
	if len(x.result.Skipped) < v1.MaxSkippedEntries {
		x.result.Skipped = append(x.result.Skipped, v1.Skipped{Path: v1.EscapePath(name), Reason: reason})
	}
}

// wasSkipped reports whether the list has an entry. A hard link to it cannot be created either.
func (x *extraction) wasSkipped(name string) bool {
	name = v1.EscapePath(name)
	return slices.ContainsFunc(x.result.Skipped, func(s v1.Skipped) bool { return s.Path == name })
}
