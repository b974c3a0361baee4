// Package store keeps the desired and the observed state of every object, and the
// transitions, in package kv. It knows no HTTP, no engine and no meaning of a spec.
//
// The whole key space (numbers are 8 bytes, big-endian):
//
//	meta/schema            version of this key space; a change of it is a migration
//	meta/id                random id of the store, made once
//	meta/incarnations      incarnations of the store, JSON (history.go)
//	meta/revision          revision of the last change of an object
//	meta/filler            zeros that nobody reads (kv/rotate.go)
//	meta/events            seq of the oldest transition kept, seq of the newest
//	<kind>/<id>/spec       what a client requested; only api/intent writes it
//	<kind>/<id>/status     what was observed; only the kind's controller writes it
//	claim/<pool>/<port>    claim of a port, five digits; only api/intent writes it
//	index/container/<volume>/<id>  empty: the container's spec has this volume
//	index/container-status/<volume>/<id>  empty: its engine container may mount it
//	event/<seq>            one transition, JSON
//	cursor/<name>          seq up to which a reader has read the transitions
//
// A kind is container, volume, pool or token; an id never has a slash. A spec or a
// status is two lines of JSON: Meta, then the value. One goroutine writes: it puts
// the updates that wait into one commit, notifies the watchers, and then answers. So
// revisions and seqs have no gaps, and watchers see changes in their order. A
// watcher that falls behind gets ErrCompacted and reads again.
package store
