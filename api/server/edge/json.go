package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"
)

// Limits on a JSON body.
const (
	maxValues = 200_000 // values, without field names; more than 1 MiB of port bindings have
	maxDepth  = 64      // of nested objects and arrays
)

// badJSON is an error of a body as a whole, without the word "body".
type badJSON string

// Error returns the text.
func (e badJSON) Error() string { return string(e) }

// checkJSON returns an error unless raw is exactly one JSON value within the
// limits. The functions below assume that raw has passed it.
func checkJSON(raw []byte) error {
	if !utf8.Valid(raw) {
		return badJSON("must be UTF-8")
	}
	values, depth := measure(raw)
	switch {
	case depth > maxDepth:
		return badJSON(fmt.Sprintf("must be nested at most %d deep", maxDepth))
	case values > maxValues:
		return badJSON(fmt.Sprintf("must hold at most %d values", maxValues))
	case json.Valid(raw):
		return nil
	}
	var first json.RawMessage
	err := json.NewDecoder(bytes.NewReader(raw)).Decode(&first)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return badJSON(fmt.Sprintf("is not JSON: %s, at byte %d", syntax, syntax.Offset))
	case err != nil:
		return badJSON(fmt.Sprintf("is not JSON: it ends too early, after %d bytes", len(raw)))
	}
	return badJSON("has data after the JSON value")
}

// measure returns the number of values in raw and their depth. If raw is not JSON
// the results have no meaning.
func measure(raw []byte) (values, depth int) {
	values = 1
	for i, open, begun := 0, 0, false; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		case c == '}' || c == ']':
			open--
			begun = false
			continue
		case c == ',' || begun: // the next value, or the first in an object or array
			values++
		}
		begun = raw[i] == '{' || raw[i] == '['
		if begun {
			open++
			depth = max(depth, open)
		}
		if raw[i] == '"' {
			i = stringEnd(raw, i) - 1
		}
	}
	return values, depth
}

// stringEnd returns the index after the string that starts at raw[at].
func stringEnd(raw []byte, at int) int {
	for i := at + 1; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// valueEnd returns the index after the value that starts at raw[at].
func valueEnd(raw []byte, at int) int {
	open := 0
	for i := at; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = stringEnd(raw, i) - 1
		case '{', '[':
			open++
		case '}', ']':
			open--
		case ',':
			if open == 0 {
				return i
			}
		}
		if open < 0 {
			return i
		}
	}
	return len(raw)
}

func trimJSON(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }

// elements iterates over the values of an array.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for at := 1; at < len(array)-1; at++ { // over the comma
			end := valueEnd(array, at)
			value := trimJSON(array[at:end])
			if len(value) > 0 && !yield(value) {
				return
			}
			at = end
		}
	}
}

// members iterates over the names and values of an object, in order.
func members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for member := range elements(object) {
			end := stringEnd(member, 0)
			value := bytes.TrimLeft(member[end:], " \t\r\n")
			if !yield(unquote(member[:end]), trimJSON(value[1:])) { // over the colon
				return
			}
		}
	}
}

// unquote returns the value of a JSON string.
func unquote(quoted []byte) (s string) {
	_ = json.Unmarshal(quoted, &s) // checkJSON has accepted it
	return s
}

func isNull(value []byte) bool { return value[0] == 'n' }
