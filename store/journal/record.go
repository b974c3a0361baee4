package journal

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	v1 "berth/api/v1"
)

// A record of a journal is one line of text:
//
//	2026-01-02T15:04:05.000000000Z F <data>
//	2026-01-02T15:04:05.000000001Z F1 <data>
//
// Records are in the order of their times, and no two have the same. A number behind the tag,
// which is one of those below, says by how many ns the time is later than the engine's. In data a
// backslash, line feed, carriage return and NUL are escaped, so that a record has one line feed, at
// its end.
const (
	timeLayout = "2006-01-02T15:04:05.000000000Z"

	tagFull    = 'F'
	tagPartial = 'P' // the line continues in the next record
	tagMessage = 'M' // written by berth
)

var (
	escaper   = strings.NewReplacer("\\", "\\\\", "\n", "\\n", "\r", "\\r", "\x00", "\\0")
	unescaper = strings.NewReplacer("\\\\", "\\", "\\n", "\n", "\\r", "\r", "\\0", "\x00")
)

// appendRecord appends the record of a line.
func appendRecord(b []byte, l v1.Line) []byte {
	tag := byte(tagFull)
	switch {
	case l.Message:
		tag = tagMessage
	case l.Partial:
		tag = tagPartial
	}
	b = append(l.At().UTC().AppendFormat(b, timeLayout), ' ', tag)
	if later := l.At().Sub(l.Time); later > 0 {
		b = strconv.AppendInt(b, int64(later), 10)
	}
	b = append(b, ' ')
	b = append(b, escaper.Replace(string(l.Data))...)
	return append(b, '\n')
}

// parse decodes a record without its line feed. It returns false for a damaged record.
func parse(rec []byte) (l v1.Line, ok bool) {
	written, rest, _ := bytes.Cut(rec, []byte{' '})
	head, data, ok := bytes.Cut(rest, []byte{' '})
	if !ok || len(head) == 0 || bytes.IndexByte([]byte{tagFull, tagPartial, tagMessage}, head[0]) < 0 {
		return l, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(written))
	if err != nil {
		return l, false
	}
	l = v1.Line{Time: at, Partial: head[0] == tagPartial, Message: head[0] == tagMessage}
	if later := string(head[1:]); later != "" {
		ns, err := strconv.ParseInt(later, 10, 64)
		if err != nil {
			return l, false
		}
		l.Time, l.Shown = at.Add(-time.Duration(ns)), at
	}
	l.Data = data
	if bytes.IndexByte(data, '\\') >= 0 {
		l.Data = []byte(unescaper.Replace(string(data)))
	}
	return l, true
}
