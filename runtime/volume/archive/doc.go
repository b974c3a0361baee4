// Package archive reads and writes archives: zip, tar, tar.gz, tar.bz2 and tar.zst; it also reads
// single files that are compressed.
//
// Extract detects the format by content and adds every entry to a Destination, in
// the order of the archive. ExtractStream does so while the archive arrives. NewWriter returns a
// Destination that writes an archive. All process content as a stream.
//
// Names are slash-separated; absolute ones are taken relative. Extract refuses names that would
// leave the destination, and it bounds the entries, the bytes and the compression ratio
// of an archive. It skips and lists entries that are no file, folder or link. A Destination
// decides what becomes of links and of entries with the same name.
//
// A zip ends with a directory of its entries, which package archive/zip keeps in
// memory. Limits.ZipDirectoryBytes bounds it in both directions, so that Extract
// accepts what a Writer wrote.
//
// Errors that clients see are errors of api/v1. The package must not know quotas,
// volumes or files of the host.
package archive
