package intent

import (
	"path"
	"strings"
)

// Policy is what the operator permits, and the defaults of containers.
type Policy struct {
	AllowedMounts []string // directories of the host that mounts may be taken from
	Registries    []string // hosts that have credentials
	ReadOnlyRoot  bool     // of containers whose request does not set it

	CPUs int // processors of the engine's host; 0: unknown

	// CheckMount returns why the host refuses the source of a mount, or ""; nil: it refuses none.
	CheckMount func(source string) (reason string)
}

func (p Policy) refuses(source string) (reason string) {
	if p.CheckMount == nil {
		return ""
	}
	return p.CheckMount(source)
}

// mayMount reports whether source is one of the allowed directories or below one.
func (p Policy) mayMount(source string) bool {
	for _, dir := range p.AllowedMounts {
		dir = path.Clean(dir)
		if source == dir || dir == "/" || strings.HasPrefix(source, dir+"/") {
			return true
		}
	}
	return false
}
