// Command manual writes the man pages and the shell completions of berth into a
// directory, laid out as below /usr/share. Equal sources give equal files: the date of the
// pages is SOURCE_DATE_EPOCH.
//
//	go run ./hack/manual VERSION DIRECTORY
package main
