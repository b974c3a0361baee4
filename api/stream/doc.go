// Package stream hands console lines, state events and stats to listeners. The lines of each
// console are in a journal of package journal.
//
// A console has one writer, a pump of package console, which appends to the journal and never waits
// for a listener. A listener has no queue of lines, only a cursor: it reads from a small ring of
// the newest lines, encoded once for all, and from the journal when it is behind the ring. So a
// client that never reads costs its position and one batch: some 32 KiB, or 240 KiB at most where a
// long line consists of control bytes: JSON writes six bytes for each. A slow client loses nothing
// until rotation removes what it has not read; then it skips lines and receives their number. A
// client that comes back continues behind its LineCursor.
//
// Order: lines of one console come in the order of the journal, state events in the order of their
// sequence numbers. An event comes before lines that are newer than it, unless it was published too
// late for that. State events are never dropped: a listener whose queue of them is full ends with
// ErrSlow, and its client resumes from the stored transitions.
//
// hub.go has the hub with its listeners, listener.go one of them with the messages that wait for it:
// cursor.go reads a console for it, batch.go builds the messages of one Next. console.go has the
// calls for a console, log.go writes it: builder.go encodes lines, ring.go keeps the newest.
// publish.go distributes events and stats; transitions.go reads events from the store,
// transition_log.go logs them. history_open.go finds the lines of a history, history.go writes them;
// turn.go bounds their readers. line_cursor.go is how far a client has read, wire.go the JSON of
// messages, options.go has bounds and errors.
//
// The package knows neither sockets nor an engine.
package stream
