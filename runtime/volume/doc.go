// Package volume operates on the files of volumes. A volume is one directory below a common
// base directory.
//
// Each operation opens the volume's directory as an os.Root and works from that handle, so neither
// a client's path nor a link that a tenant swaps in during the operation can lead outside. Below a
// client's path package walk takes over, with open folders and single names, and holds a few
// handles at any depth. Metadata calls never follow the last link of a path; reads and writes of
// content follow links that stay inside the volume. FIFOs, sockets and devices are never opened.
//
// New files are created in a folder beside the volumes, .tmp, which no container can reach, and
// renamed when they are complete; removed trees are renamed to it. Scan removes what a crash, or
// an interrupted removal, left there. Memory use does not grow with a volume: trees and archives
// are processed as streams. Limits.NameBytes bounds the names that an operation has to keep: beyond it, hard links
// are archived as files.
//
// Each operation has a file of its name; decompress.go uses extract.go and merge.go, restore.go
// and snapshots.go are about backups, inplace*.go about SFTP: inplace_file.go is an open file,
// inplace_handles.go knows all. manager.go has all volumes, open_volume.go and roots.go open one,
// gate.go keeps operations apart from a restore. path.go has the rules of paths, links.go follows
// links, folder.go opens folders, temp.go makes temporary entries, owner.go sets owners, extents.go finds
// holes, usage.go has the usage, scan.go counts it.
//
// Package archive reads and writes archives, package configfile edits configuration files, package
// quota keeps volumes within their limits. Errors that clients see are errors of api/v1. The
// package must not know who calls it, nor what a volume is used for.
package volume
