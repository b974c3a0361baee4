// Package model holds one test: the real daemon is killed (SIGKILL) again and again while clients create,
// change and delete random objects, and a model that knows only the interface decides what must be there
// afterwards. The engine is the real one, which outlives the daemon. What the model requires:
//
//   - An acknowledged request holds after every kill. One without an answer holds as a whole or not at all.
//   - A repeated Idempotency-Key gets the answer of the first request, and nothing happens twice.
//   - Each run and each installation happens once: games count them in their volumes.
//   - The transitions of GET /events have no gap, never change, and each follows from the one before.
//   - No port has two containers. A deleted object leaves nothing on the engine and the disk.
//
// Kills and clients are random:
//
//	BERTH_LONG=1        900 kills instead of 10
//	BERTH_MODEL_KILLS=n as many kills
//	BERTH_MODEL_SEED=n  repeat the random numbers of an earlier run
package model
