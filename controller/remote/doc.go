// Package remote sends every stored transition to the panel's webhook: in order, at
// least once, from a cursor in the store.
//
// The Sender reads a batch from the log, sends it, and advances the cursor after the
// panel accepted it. It keeps no queue in memory. After a crash it sends a batch
// again; the panel recognises a repeated transition by its seq. The panel may be
// unreachable for days. Transitions that the log no longer holds are sent as a gap, as
// on a socket.
//
// The Sender retries with backoff while the panel is unreachable or busy. If the
// panel rejects the configuration (the token or the URL), it retries slowly and skips
// nothing. If the panel rejects the content, it splits the batch until it has found
// the rejected transition, and parks that one: it logs, counts and skips it.
//
// The package does not know what a transition means, and follows no redirect.
package remote
