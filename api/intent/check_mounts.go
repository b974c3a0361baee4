package intent

import (
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

func checkMounts(f *v1.FieldErrors, p Policy, spec *v1.ContainerSpec) {
	if len(spec.Mounts) > maxList {
		f.Add("mounts", "must be at most %d", maxList)
		return
	}
	if len(spec.Mounts) == 0 {
		spec.Mounts = nil
	}
	targets := map[string]bool{v1.Home: true}
	for i := range spec.Mounts {
		m := &spec.Mounts[i]
		at := fmt.Sprintf("mounts[%d]", i)
		if !absolute(m.Source) {
			f.Add(at+".source", "must be an absolute path")
		} else if m.Source = path.Clean(m.Source); !p.mayMount(m.Source) {
			f.Add(at+".source", "must be below a directory of docker.allowed_mounts")
		} else if reason := p.refuses(m.Source); reason != "" {
			f.Add(at+".source", "%s", reason)
		}
		if !absolute(m.Target) || path.Clean(m.Target) == "/" {
			f.Add(at+".target", "must be an absolute path other than /")
			continue
		}
		m.Target = path.Clean(m.Target)
		if inKernelPath(m.Target) {
			f.Add(at+".target", "must not be in /proc, /sys or /dev")
		}
		if targets[m.Target] {
			f.Add(at+".target", "is mounted twice")
		}
		targets[m.Target] = true
	}
}

// absolute reports whether p is an absolute path without "..", NUL or a colon, which
// is a separator in the engine's short form.
func absolute(p string) bool {
	return strings.HasPrefix(p, "/") && !strings.ContainsAny(p, "\x00:") &&
		!slices.Contains(strings.Split(p, "/"), "..") && len(p) <= v1.MaxPath
}
