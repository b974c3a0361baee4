package v1

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Duration is a time.Duration written as text: Go's units plus d and w, which
// combine ("1d12h"). In JSON it may also be a number of seconds.
type Duration time.Duration

var daysAndWeeks = regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?)([dw])`)

// ParseDuration parses "90s", "1h30m", "7d" or "1w2d". An empty text is an error.
func ParseDuration(text string) (time.Duration, error) {
	hours := daysAndWeeks.ReplaceAllStringFunc(text, func(part string) string {
		n, err := strconv.ParseFloat(part[:len(part)-1], 64)
		if err != nil {
			return part
		}
		perUnit := 24.0
		if part[len(part)-1] == 'w' {
			perUnit *= 7
		}
		return strconv.FormatFloat(n*perUnit, 'f', -1, 64) + "h"
	})
	d, err := time.ParseDuration(hours)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 1h30m or 7d", text)
	}
	return d, nil
}

// String returns the text in Go's units.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads the text, or a number of seconds.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var seconds float64
	if err := json.Unmarshal(b, &seconds); err == nil {
		*d = Duration(seconds * float64(time.Second))
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	return d.UnmarshalText([]byte(text))
}

// UnmarshalText reads the text.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := ParseDuration(string(b))
	*d = Duration(v)
	return err
}
