// Package store keeps the desired and the observed state of every object in memory, and the
// transitions, the audit log and the outcomes of requests on the disk, all of them durably in package kv.
// It knows no HTTP, no engine and no meaning of a spec. One writer puts the updates that wait
// into one commit, publishes it, notifies the watchers, and then answers: revisions and seqs have no
// gaps, and whoever reads or watches sees what is on the disk. See ADR 0034.
//
// The key space, version 1 (values are JSON, <seq> is 8 bytes big-endian, an id has no slash):
//
//	meta/{schema,id,revision,incarnations,node,engine,jump}  one each
//	<kind>/<id>/spec       two lines, v1.Meta and what a client requested; see rule 1 of architecture.md
//	<kind>/<id>/status     two lines, revision and what was observed; the kind's controller writes it
//	claim/<pool>/<port>    claim of a port, five digits; only api/intent writes it
//	restoring/<volume>     what has reserved it: the id of a restore that has not finished, a transfer or an arrival
//	cursor/<name>          seq up to which a reader has read the transitions
//	meta/{events,audits}   oldest and newest seq of a log
//	{event,audit}/<seq>    a transition, an entry of the audit log; only on the disk
//	outcome/<quota>/<token>/<hash>  outcome of an idempotency key, for 24 hours; only on the disk
//	skipped/<backup>       skipped entries, if its status has not all of them; only on the disk
//
// A kind is container, volume, pool, token, backup, policy, restore, pull, image, schedule, transfer or arrival.
package store
