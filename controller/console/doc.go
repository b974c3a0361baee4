// Package console reads the output of containers. One pump per console follows the
// engine's log, appends the lines to a Sink, and searches them for the start pattern.
//
// After a restart of berth or the engine, and after a re-creation of the container,
// a pump resumes at the end of the journal. It requests some lines again and drops
// those that the journal already has, so that lines with equal or unordered times are
// neither lost nor duplicated. It handles a live stream that goes back in time in the
// same way: Docker before 23 repeats a log file when it rotates it. A pump never waits
// for a listener. The end of a stream is not the exit of the container, unless the
// engine reports it.
//
// The package is level-triggered: Follow may be called any number of times, and
// Source only names containers to reconcile.
//
// Two goroutines read a console: one receives the engine's stream; the other appends the
// lines that wait to the journal, and searches them for the start pattern.
//
// The package does not know sockets, files or HTTP: a Sink stores the lines.
package console
