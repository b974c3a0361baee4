// Package volume drives the volumes of the host toward their specs: the
// directory is made once, its use is measured, and it goes when its record is
// asked to go and no container is left that uses it.
//
// A directory that was made is never made again: one that is gone or replaced
// is told, and an empty one never takes its place.
//
// It must not know what is done to files, nor paths inside a volume.
package volume
