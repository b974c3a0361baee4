// Package journal keeps the lines of consoles on disk. The journal of a container has the output
// of its installer and of its server in the order in which it was written.
//
// A journal is a sequence of bytes. It is stored in segments, files of text that are named by the
// offset of their first byte: server-00000000000000012345.log. A full segment is followed by the
// next one, and so is one of the other role. The oldest segments of a role are removed. So an
// offset is good for ever: it is that of one line, or of a line that is no longer kept. A Cursor
// is an offset with the random id of its journal, so that a lost or another journal is noticed.
//
// The two writers of a journal take turns. Readers are any number; they take no lock while they
// read. The times of records, v1.Line.At, rise strictly, so a time is found by
// binary search.
//
// berth may be killed at any time. Open ignores a record that was cut, and the next Append
// truncates the segment there. Damage in the middle costs the damaged records only.
//
// The package knows neither listeners nor an engine.
package journal
