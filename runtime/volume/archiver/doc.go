// Package archiver writes the archives of volumes in a process of low priority, one for
// each archive.
//
// The process is berth itself with the argument Command. It inherits the handle of the
// volume's root folder and no environment, receives a volume.ArchiveJob as JSON on its
// standard input, and writes the archive to its standard output: the file of the archive,
// or a pipe to the daemon. On another pipe it sends messages, a line of JSON each: its
// progress, and at the end the result, with size and checksum, or the error. The daemon
// answers with the bytes that may be written. The process ends with the one that started it.
//
// The daemon's side is archiver.go, which starts processes, and process.go, which follows one.
// The side of the process is main.go, with priority.go, reporter.go, which sends the messages
// of message.go, and pace.go, which pauses by the processor time that use.go reads.
package archiver
