// Package remote tells the panel of every stored transition: in order, at least
// once, from a cursor in the store.
//
// Nothing is kept in memory that matters: a batch is read from the log, sent,
// and only then is the cursor moved. So a crash sends a batch again, and the
// seq of each transition tells. The panel may be away for days; that changes
// nothing but the cursor's distance. What the log no longer keeps is told as a
// gap, as on a socket.
//
// A panel that is down or busy is tried again with backoff. A refusal that is
// about the configuration is tried again slowly, and skips nothing. One that is
// about the content halves the batch until the transition at fault stands alone,
// and that one is parked: reported, counted, and passed over.
//
// It must not know what a transition means, and follows no redirect.
package remote
