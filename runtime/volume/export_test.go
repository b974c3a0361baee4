package volume

import (
	"syscall"

	"berth/runtime/volume/fsys"
)

// WithoutExchange lets a manager work as on a file system that cannot exchange directories.
func (m *Manager) WithoutExchange() {
	m.exchange = func(*fsys.Folder, string, *fsys.Folder, string) error { return syscall.EINVAL }
}
