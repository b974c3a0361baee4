// Package volume is the controller of volumes. It creates the directory of a volume
// once, measures its disk usage, and removes it after the volume was deleted and no
// container uses it.
//
// The controller never creates a directory twice. If it is missing or replaced, the
// condition DirectoryReady reports that; an empty directory never takes its place.
//
// The package does not know files or paths inside a volume.
package volume
