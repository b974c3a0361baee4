// Package volume operates on the files of volumes. A volume is one directory below a common
// base directory.
//
// Each operation opens the volume's directory as an os.Root and works from that handle, so neither
// a client's path nor a link that a tenant swaps in during the operation can lead outside. Trees are
// visited from open folder to open folder, at most 256 levels deep. Metadata calls never follow the
// last link of a path; reads and writes of content follow links that stay inside the volume. FIFOs,
// sockets and devices are never opened.
//
// New files are created in a folder beside the volumes, .tmp, which no container can reach, and
// renamed when they are complete; removed trees are renamed to it. Uploads, copies, archives and extractions
// create what they make by the methods of temp. The tree of a restore is created by package backup: its owners,
// modes and times are exact, and an entry that is there twice, or out of order, is damage. Scan removes what
// a crash, or an interrupted removal, left in .tmp. Memory use does not grow with a volume: trees and archives
// are processed as streams. Limits.NameBytes bounds the names that an archive has to keep: beyond
// it, hard links are archived as files.
//
// A limit is soft: what is written here is reserved before, and a scan counts what containers
// write. Where the file system has project quotas it is hard as well.
//
// Errors that clients see are errors of api/v1. The package must not know who calls it, nor what a
// volume is used for.
package volume
