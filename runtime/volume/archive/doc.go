// Package archive reads and writes archives: zip, tar, tar.gz and tar.bz2.
//
// Extract detects the format by content and adds every entry to a Destination, in
// the order of the archive. NewWriter returns a Destination that writes an archive.
// Both process content as a stream.
//
// Names are slash-separated and relative. Extract refuses names that would leave
// the destination, and it bounds the entries, the bytes and the compression ratio
// of an archive. A Destination decides what becomes of links and of entries with
// the same name.
//
// A zip ends with a directory of its entries, which package archive/zip keeps in
// memory. Limits.ZipDirectoryBytes bounds it in both directions, so that Extract
// accepts what a Writer wrote.
//
// archive.go has the types and errors. reader.go detects the format and checks every entry,
// source.go reads the archive, writer.go writes one. tar.go and zip.go have both directions of
// a format, zipdirectory.go the directory of a zip, bzip2.go the compressor.
//
// Errors that clients see are errors of api/v1. The package must not know quotas,
// volumes or files of the host.
package archive
