package node

import (
	"path"
	"strings"

	v1 "berth/api/v1"
)

// inside returns a path of the panel's as berth has it: relative to the volume, and empty for its root.
// berth refuses one that leads out of the volume.
func inside(parts ...string) string {
	all := ""
	for _, part := range parts {
		all += "/" + part
	}
	clean := path.Clean(strings.TrimLeft(all, "/"))
	if clean == "." {
		return ""
	}
	return v1.EscapePath(clean)
}

// plain returns a path of berth's as the panel has it: any bytes.
func plain(name string) string {
	if clean, err := v1.ParsePath(name, v1.DotsInNames); err == nil {
		return clean
	}
	return name
}
