package stream

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	v1 "berth/api/v1"
)

// The events that exist only on sockets, beside v1.EventState and v1.EventMessage.
const (
	EventConsole = "console"
	EventLogs    = "logs"
	EventStats   = "stats"
	EventGap     = "gap"
)

// Message is one message for a socket.
type Message struct {
	Event string
	Seq   uint64 // of a stored transition, else 0
	JSON  []byte // one text frame; valid until the next call of Next

	Transition *v1.Event // that the message reports; nil: none. It is shared.
}

// Encode returns the JSON of a message. It leaves out an empty container and a seq of
// 0. Bytes of data that are not UTF-8 become U+FFFD.
func Encode(event, container string, data []byte, at time.Time, seq uint64) []byte {
	return encode(event, container, data, at, seq, "")
}

// EncodeGap returns the JSON of a gap: transitions before the seq oldest are not
// kept, or are of another epoch.
func EncodeGap(oldest uint64, epoch string, at time.Time) []byte {
	return encode(EventGap, "", strconv.AppendUint(nil, oldest, 10), at, 0, epoch)
}

func encode(event, container string, data []byte, at time.Time, seq uint64, epoch string) []byte {
	b := make([]byte, 0, len(data)+len(data)/8+128)
	b = appendHead(b, event, container)
	b = append(b, `,"data":"`...)
	b = appendText(b, data)
	b = append(b, '"')
	return appendFoot(b, at, seq, epoch)
}

// AppendStart appends the JSON of a message up to its data, whose pieces follow. It
// leaves out an empty container.
func AppendStart(b []byte, event, container string) []byte {
	return append(appendHead(b, event, container), `,"data":"`...)
}

// AppendEnd appends the JSON behind the data and the times of a logs message, whose
// receiver has read up to line.
func AppendEnd(b []byte, at time.Time, line LineCursor) []byte {
	return AddLine(appendFoot(append(b, ']'), at, 0, ""), line)
}

// EncodeEvent returns the JSON of a stored transition, with its container if the
// socket is node-wide.
func EncodeEvent(e v1.Event, nodeWide bool) []byte {
	container := ""
	if nodeWide {
		container = e.Container
	}
	b := append(AppendStart(make([]byte, 0, len(e.Data)+256), e.Event, container), appendText(nil, []byte(e.Data))...)
	b = appendObject(appendCause(append(b, '"'), e), e)
	return appendFoot(appendActor(b, e.Actor), e.Time, e.Seq, e.Epoch)
}

// appendObject appends the ids of a backup, a restore or a download and its volume.
func appendObject(b []byte, e v1.Event) []byte {
	for _, f := range [][2]string{{"backup", e.Backup}, {"restore", e.Restore}, {"pull", e.Pull}, {"volume", e.Volume}} {
		if f[1] != "" {
			b = append(append(append(append(append(b, `,"`...), f[0]...), `":"`...), f[1]...), '"')
		}
	}
	return b
}

// appendCause appends where a state came from and why; each is left out when empty.
func appendCause(b []byte, e v1.Event) []byte {
	if e.From != "" {
		b = append(append(append(b, `,"from":"`...), e.From...), '"')
	}
	if e.Reason != "" {
		b = append(append(append(b, `,"reason":"`...), e.Reason...), '"')
	}
	if e.ExitCode != nil {
		b = strconv.AppendInt(append(b, `,"exit_code":`...), int64(*e.ExitCode), 10)
	}
	if e.RestartCount > 0 {
		b = strconv.AppendInt(append(b, `,"restart_count":`...), int64(e.RestartCount), 10)
	}
	if e.NextRetryAt != nil {
		b = append(e.NextRetryAt.UTC().AppendFormat(append(b, `,"next_retry_at":"`...), time.RFC3339Nano), '"')
	}
	return b
}

// appendActor appends who caused a transition. It leaves out the zero Actor.
func appendActor(b []byte, a v1.Actor) []byte {
	if a == (v1.Actor{}) {
		return b
	}
	text, _ := json.Marshal(a) // plain data: it cannot fail
	return append(append(b, `,"actor":`...), text...)
}

// EncodeStats returns the JSON of a stats message. It leaves out an empty container.
func EncodeStats(container string, s v1.Stats, at time.Time) []byte {
	fields, err := json.Marshal(s)
	if err != nil { // NaN or infinite
		fields = []byte("{}")
	}
	b := appendHead(make([]byte, 0, len(fields)+128), EventStats, container)
	if fields = fields[1 : len(fields)-1]; len(fields) > 0 {
		b = append(append(b, ','), fields...)
	}
	return appendFoot(b, at, 0, "")
}

func appendHead(b []byte, event, container string) []byte {
	b = append(b, `{"event":"`...)
	b = append(b, event...)
	b = append(b, '"')
	if container != "" {
		b = append(b, `,"container":"`...)
		b = appendText(b, []byte(container))
		b = append(b, '"')
	}
	return b
}

func appendFoot(b []byte, at time.Time, seq uint64, epoch string) []byte {
	b = append(b, `,"time":"`...)
	b = at.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	if seq != 0 {
		b = append(b, `,"seq":`...)
		b = strconv.AppendUint(b, seq, 10)
	}
	if epoch != "" {
		b = append(b, `,"epoch":"`...)
		b = append(appendText(b, []byte(epoch)), '"')
	}
	return append(b, '}')
}

const hexDigits = "0123456789abcdef"

// appendText appends data as the inside of a JSON string.
func appendText(b, data []byte) []byte {
	plain := 0
	for i := 0; i < len(data); {
		c := data[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRune(data[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		b = append(b, data[plain:i]...)
		b = appendEscape(b, c)
		i += size
		plain = i
	}
	return append(b, data[plain:]...)
}

func appendEscape(b []byte, c byte) []byte {
	switch {
	case c >= utf8.RuneSelf:
		return append(b, "\uFFFD"...)
	case c == '"', c == '\\':
		return append(b, '\\', c)
	case c == '\n':
		return append(b, '\\', 'n')
	case c == '\r':
		return append(b, '\\', 'r')
	case c == '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// runeTail returns the number of bytes of an incomplete rune at the end of data.
func runeTail(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		c := data[len(data)-n]
		if !utf8.RuneStart(c) {
			continue
		}
		if c >= utf8.RuneSelf && !utf8.FullRune(data[len(data)-n:]) {
			return n
		}
		return 0
	}
	return 0
}

// AddExpiry adds the expiry of a token to the JSON of a message.
func AddExpiry(message []byte, at time.Time) []byte {
	b := append(message[:len(message)-1], `,"expires_at":"`...)
	return append(at.UTC().AppendFormat(b, time.RFC3339Nano), '"', '}')
}
