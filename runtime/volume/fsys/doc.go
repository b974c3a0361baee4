// Package fsys reads and changes trees of files while others, hostile ones included, change them.
//
// A Folder is open, and everything is done by its handle: neither a name nor a link that is swapped in
// leads out of it. FIFOs, sockets and devices are never opened. A Walker is the one reader of trees: scans,
// searches, copies, archives and backups use it. The package must not know volumes or archives.
package fsys
