// Package console reads what containers print. One pump per console follows the
// engine's log, writes it to a journal, hands it to listeners, and looks for the
// start pattern. The Sampler takes stats while somebody asks for them.
//
// A pump resumes where the journal ends, after a restart of berth or of the
// engine and after a re-creation. It asks for a little more than it needs and
// leaves out what is in the journal, so lines whose times are equal or out of
// order are neither lost nor doubled. A stream that goes back in time (Docker
// before 23 repeats a log file that it rotates) is read in the same way. It never waits for a listener. The end of
// a stream says nothing about the container unless the engine says so.
//
// Level, not edge: Follow may be called any number of times, Source only says
// "look again".
//
// It must not know sockets, files or HTTP: a Sink keeps the lines.
package console
