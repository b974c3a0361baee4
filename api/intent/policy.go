package intent

import (
	"path"
	"strings"
)

// Policy is what the operator permits.
type Policy struct {
	AllowedMounts []string // directories of the host that mounts may be taken from
	Registries    []string // hosts that have credentials
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
