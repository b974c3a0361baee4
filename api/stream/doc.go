// Package stream hands console lines, state events and stats to listeners. The lines of each
// container are in its journal, of package journal.
//
// The writers of a console, pumps of package console, append to the journal and wake the listeners;
// they never wait for one. A listener has no lines, only an offset in each journal: Take reads
// what follows, some 16 KiB at a time. So a client that never reads costs what one Take has
// returned. A slow client loses nothing until the journal has removed what it has not read; then it
// skips lines and receives their number. A client that comes back continues behind its Cursor.
//
// Order: lines of a container come in the order of the journal, state events in the order of their
// sequence numbers. An event comes before lines that are newer than it, unless it was published too
// late for that. State events are never dropped: a listener whose queue of them is full ends with
// ErrSlow, and its client resumes from the stored transitions.
//
// A History is a value, of at most 10,000 lines or 4 MiB: whoever sends it bounds how many there are. The listeners of
// one container take turns, so together they use one processor.
//
// The package knows neither sockets nor an engine.
package stream
