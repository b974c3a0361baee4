// Package store keeps what is wanted and what was observed, in Badger. It knows
// neither HTTP nor the engine, and nothing of what a spec means.
//
// The whole key space (numbers are 8 bytes, big-endian):
//
//	meta/schema            version of this drawing; a change of it is a migration
//	meta/id                the random id of the store, made once
//	meta/incarnations      the lives of the store, JSON (epoch.go)
//	meta/revision          revision of the last change of an object
//	meta/filler            zeros that nobody reads (writer.go)
//	meta/events            seq of the oldest transition kept, seq of the newest
//	<kind>/<id>/spec       what a client asked for; only api/intent writes it
//	<kind>/<id>/status     what was observed; only the kind's controller writes it
//	claim/<pool>/<port>    the claim of a port, five digits; only api/intent writes it
//	index/container/<volume>/<id>  empty: the container's spec has this volume
//	index/container-status/<volume>/<id>  empty: its container on the engine may mount this volume
//	event/<seq>            one transition, JSON
//	cursor/<name>          the seq up to which somebody has read the transitions
//
// A kind is container, volume, pool or token; an id never holds a slash. Half an
// object is two lines of JSON: Meta, then the value.
//
// Beside the files of Badger lie MARK (mark.go) and RESERVE (disk.go).
//
// One goroutine writes. It puts the updates that wait into one transaction of
// Badger, commits it to the disk, tells the watchers, and only then answers. So
// revisions and seqs have no gaps, and watchers see changes in the order they
// were made. A watcher that falls behind gets ErrCompacted and reads again.
package store
