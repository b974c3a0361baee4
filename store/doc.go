// Package store keeps the desired and the observed state of every object, and the
// transitions, in package kv. It knows no HTTP, no engine and no meaning of a spec.
//
// The whole key space (numbers are 8 bytes, big-endian):
//
//	meta/schema            version of this key space; a change of it is a migration
//	meta/id                random id of the store, made once
//	meta/incarnations      incarnations of the store, JSON (incarnation.go)
//	meta/revision          revision of the last change of an object
//	meta/filler            zeros that nobody reads (kv/rotate.go)
//	meta/events            seq of the oldest transition kept, seq of the newest
//	<kind>/<id>/spec       what a client requested; only api/intent writes it
//	<kind>/<id>/status     what was observed; only the kind's controller writes it
//	claim/<pool>/<port>    claim of a port, five digits; only api/intent writes it
//	index/<kind>/<ref>/<id>  empty: the spec of a container or backup has this volume, of a restore this backup
//	backup-size/<id>       bytes of a backup's archive, then its target
//	meta/backups/<target>  number of the backups of a target, bytes of their archives
//	skipped/<id>           skipped entries of a backup, JSON, if its status has not all of them
//	restoring/<volume>     id of the restore that has not finished
//	index/container-status/<volume>/<id>  empty: its engine container may mount it
//	index/token-key/<hash>/<id>  empty: the token has the public key with this hash
//	event/<seq>            one transition, JSON
//	index/event/<container>/<seq>  empty: the transition is of this container, or of the volume after a colon
//	meta/audits            seq of the oldest entry of the audit log kept, seq of the newest
//	audit/<seq>            one entry of the audit log, JSON
//	meta/outcomes          seq of the oldest outcome kept, seq of the newest
//	outcome/<seq>          outcome of a request with an idempotency key, JSON
//	outcome-key/<token>/<hash>  seq of the outcome of a token's key
//	outcome-count/<token>  number of outcomes that count for a token
//	cursor/<name>          seq up to which a reader has read the transitions
//
// store.go has the Store, open.go opens it, schema.go and migrations.go bring an old one up to
// date. tx.go and scan.go read and write keys, record.go the records of objects, collection.go
// and collection_write.go objects; index.go finds objects by a reference, list_after.go by their
// order. writer.go runs updates, turns.go one at a time, batch.go commits them, request.go adds
// the audit entry and the outcome of a request. watch.go has the changes of objects, which
// ring.go keeps; source.go passes them to controllers, await.go waits for one, projection.go and
// ids.go keep what is derived from objects, unchanged.go when each has changed. sequence.go is a
// numbered log: of transitions (event.go, event_index.go, watch_events.go), audit entries
// (audit.go) and outcomes (outcome.go). claim.go, cursor.go, node.go, restoring.go and
// backup_records.go have keys of their own, while backup.go is about backups of the store itself.
// incarnation.go is about its copies, verify.go and repair.go about damage.
//
// A kind is container, volume, pool, token, backup, policy, restore or pull; an id never has a slash. A spec or a
// status is two lines of JSON: Meta, then the value. One goroutine at a time writes: it puts
// the updates that wait into its commit, notifies the watchers, and then answers. So
// revisions and seqs have no gaps, and watchers see changes in their order. A
// watcher that falls behind gets ErrCompacted and reads again.
package store
