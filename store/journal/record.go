package journal

import (
	"bytes"
	"time"

	v1 "berth/api/v1"
)

// A record of a journal is one line of text:
//
//	2026-01-02T15:04:05.000000000Z F <data>
//	2026-01-02T15:04:05.000000001Z f 2026-01-02T15:04:05.000000000Z <data>
//
// The tag is one of those below. Records are in the order of their first time, and
// no two have the same. If the engine's time of a line is not later than the record
// before, a lower-case tag precedes the engine's time. In data a backslash, line feed, carriage return and
// NUL are escaped, so that a record has one line feed, at its end.
const (
	stampLayout = "2006-01-02T15:04:05.000000000Z"
	headerSize  = len(stampLayout) + 3

	tagFull    = 'F'
	tagPartial = 'P' // the line continues in the next record
	tagMessage = 'M' // written by berth

	maxData = 32 << 10 // bytes of a record; a longer line becomes several partial ones
)

// ownTime is added to a tag if the engine's time follows.
const ownTime = 'a' - 'A'

func tagOf(l v1.Line) byte {
	tag := byte(tagFull)
	switch {
	case l.Message:
		tag = tagMessage
	case l.Partial:
		tag = tagPartial
	}
	if !l.Shown.IsZero() {
		tag += ownTime
	}
	return tag
}

// appendRecord appends the record of a line, whose data is no longer than split
// allows.
func appendRecord(b []byte, l v1.Line) []byte {
	b = l.At().UTC().AppendFormat(b, stampLayout)
	b = append(b, ' ', tagOf(l), ' ')
	if !l.Shown.IsZero() {
		b = append(l.Time.UTC().AppendFormat(b, stampLayout), ' ')
	}
	b = appendEscaped(b, l.Data)
	return append(b, '\n')
}

func appendEscaped(b, data []byte) []byte {
	plain := 0
	for i, c := range data {
		e := escapeOf(c)
		if e == 0 {
			continue
		}
		b = append(b, data[plain:i]...)
		b = append(b, '\\', e)
		plain = i + 1
	}
	return append(b, data[plain:]...)
}

// escapeOf returns the letter that stands for c behind a backslash, or 0 if c is
// not escaped.
func escapeOf(c byte) byte {
	if c > '\\' {
		return 0
	}
	switch c {
	case '\\':
		return '\\'
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case 0:
		return '0'
	}
	return 0
}

// parse decodes a record without its line feed. Data is a part of rec, which is
// changed. It returns false for a damaged record.
func parse(rec []byte) (v1.Line, bool) {
	at, tag, ok := parseHeader(rec)
	if !ok {
		return v1.Line{}, false
	}
	l := v1.Line{Time: at, Partial: tag&^ownTime == tagPartial, Message: tag&^ownTime == tagMessage}
	rec = rec[headerSize:]
	if tag&ownTime != 0 {
		if len(rec) <= len(stampLayout) || rec[len(stampLayout)] != ' ' {
			return v1.Line{}, false
		}
		l.Shown = at
		if l.Time, ok = parseTime(rec[:len(stampLayout)]); !ok {
			return v1.Line{}, false
		}
		rec = rec[len(stampLayout)+1:]
	}
	l.Data = unescape(rec)
	return l, true
}

func parseHeader(rec []byte) (at time.Time, tag byte, ok bool) {
	if len(rec) < headerSize || rec[headerSize-1] != ' ' || rec[headerSize-3] != ' ' {
		return time.Time{}, 0, false
	}
	tag = rec[headerSize-2]
	switch tag &^ ownTime {
	case tagFull, tagPartial, tagMessage:
		at, ok = parseTime(rec[:len(stampLayout)])
		return at, tag, ok
	}
	return time.Time{}, 0, false
}

func parseTime(text []byte) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, string(text))
	return at, err == nil
}

// unescape undoes appendEscaped in place.
func unescape(data []byte) []byte {
	w := bytes.IndexByte(data, '\\')
	if w < 0 {
		return data
	}
	for r := w; r < len(data); r++ {
		c := data[r]
		if c == '\\' && r+1 < len(data) {
			r++
			c = plainOf(data[r])
		}
		data[w] = c
		w++
	}
	return data[:w]
}

func plainOf(escape byte) byte {
	switch escape {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case '0':
		return 0
	}
	return escape
}

// split calls each with the line, or with several partial lines if it is longer
// than a record may be.
func split(l v1.Line, each func(v1.Line)) {
	for len(l.Data) > maxData {
		each(v1.Line{Time: l.Time, Data: l.Data[:maxData], Partial: true})
		l.Data = l.Data[maxData:]
	}
	each(l)
}
