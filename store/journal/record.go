package journal

import (
	"bytes"
	"time"

	v1 "berth/api/v1"
)

// A record of a journal is one line of text:
//
//	2026-01-02T15:04:05.000000000Z F <data>
//
// The tag is one of those below. In data a backslash, line feed, carriage return and
// NUL are escaped, so that a record has one line feed, at its end.
const (
	stampLayout = "2006-01-02T15:04:05.000000000Z"
	headerSize  = len(stampLayout) + 3

	tagFull    = 'F'
	tagPartial = 'P' // the line continues in the next record
	tagMessage = 'M' // written by berth

	maxData = 32 << 10 // bytes of a record; a longer line becomes several partial ones
)

func tagOf(l v1.Line) byte {
	switch {
	case l.Message:
		return tagMessage
	case l.Partial:
		return tagPartial
	}
	return tagFull
}

// AppendRecord appends the record of a line, whose data is no longer than Split
// allows.
func AppendRecord(b []byte, l v1.Line) []byte {
	b = l.Time.UTC().AppendFormat(b, stampLayout)
	b = append(b, ' ', tagOf(l), ' ')
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
	data := unescape(rec[headerSize:])
	return v1.Line{Time: at, Data: data, Partial: tag == tagPartial, Message: tag == tagMessage}, true
}

func parseHeader(rec []byte) (at time.Time, tag byte, ok bool) {
	if len(rec) < headerSize || rec[headerSize-1] != ' ' || rec[headerSize-3] != ' ' {
		return time.Time{}, 0, false
	}
	tag = rec[headerSize-2]
	if tag != tagFull && tag != tagPartial && tag != tagMessage {
		return time.Time{}, 0, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(rec[:len(stampLayout)]))
	return at, tag, err == nil
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

// Split calls each with the line, or with several partial lines if it is longer
// than a record may be.
func Split(l v1.Line, each func(v1.Line)) {
	for len(l.Data) > maxData {
		each(v1.Line{Time: l.Time, Data: l.Data[:maxData], Partial: true})
		l.Data = l.Data[maxData:]
	}
	each(l)
}
