// Package volume works on the files of volumes: one directory each, below one
// base directory.
//
// Every operation opens the volume's directory as an os.Root and goes on from
// that handle alone, so neither a path of a client nor a link that a tenant
// swaps at any moment can lead out. Below the paths of clients it works with open
// folders and single names, and holds a few handles at any depth. Metadata calls
// never follow the last link of a path; content may be reached through links that
// stay inside. FIFOs, sockets and devices are never opened.
//
// What is made is made under a temporary name in the volume's root folder, and
// renamed into place when it is whole. Temporary names are hidden and refused
// as paths; Sweep removes those that were left behind.
//
// Memory does not grow with a volume: trees are walked and archives read and
// written as streams. What a format or a walk has to keep of the names in a
// volume is bounded by Limits.Held; past it a zip is refused (about 400,000
// files), and hard links are packed as files.
//
// Refusals are errors of api/v1. It must not know who asks, nor what a volume
// is for; a path has passed v1.CheckPath before it is used.
package volume
