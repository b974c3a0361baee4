// Package stream knows who listens to what. It keeps each console in a journal
// of its own and hands lines, state events and stats to listeners.
//
// A console has one writer, the pump, which appends to the journal and never
// waits for a listener. A listener has no queue of lines, only a cursor: it reads
// from a small ring of what was written last, encoded once for all, and from the
// journal when it is behind the ring. So a client that never reads costs its
// position and one batch of some 32 KiB at most, and a slow one loses nothing until it is a whole journal file
// behind; then it jumps ahead and is told how many lines it missed.
//
// Order: lines of one console come in the order of the journal, state events in
// the order of their sequence numbers. An event is handed out before lines that
// are newer than it, unless it came too late for that.
//
// State events are never dropped: a listener whose queue of them is full is
// ended with ErrSlow, and its client resumes from the stored transitions.
//
// It must not know sockets, the store or an engine.
package stream
