// Package walk visits and removes trees of folders that somebody else may change at
// the same time.
//
// It works from handle to handle: a Dir is one open folder, and each system call
// gets its handle and the name of a single entry, never a path, and follows no link.
// So whatever folders an attacker renames or replaces by links, an operation reaches
// nothing but the folders that he can move himself.
//
// A Stack is the way from the first folder down to the current one. It keeps only
// the last few folders open, so an operation needs the same few handles at any
// depth. Walker visits every entry of a tree, and Remove removes it; both read the
// names of a folder in blocks and keep no list of them.
//
// dir.go has the system calls on names in an open folder, names.go reads its names, fileinfo.go
// describes one; the other files have what they are named after.
//
// Errors are those of system calls, ErrMoved and ErrNotRegular. The package must not
// know what a volume is, nor which entries an operation selects.
package walk
