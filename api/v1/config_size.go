package v1

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written as text with a unit ("1MiB") or as a plain number.
type Size int64

// The binary units of Size.
const (
	KiB Size = 1 << (10 * (iota + 1))
	MiB
	GiB
	TiB
)

type unit struct {
	suffix string
	bytes  Size
}

// units returns the units with the longer suffixes first.
func units() []unit {
	return []unit{
		{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB},
		{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3},
		{"T", TiB}, {"G", GiB}, {"M", MiB}, {"K", KiB}, {"k", KiB}, {"B", 1}, {"", 1},
	}
}

// ParseSize parses "1MiB", "1.5 GiB", "500MB" or "1048576". A single letter is the binary unit.
func ParseSize(text string) (Size, error) {
	for _, u := range units() {
		number, ok := strings.CutSuffix(strings.TrimSpace(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		bytes := n * float64(u.bytes)
		if err != nil || !(bytes >= 0 && bytes < math.MaxInt64) || strings.ContainsAny(number, "xXpP_eE") {
			break
		}
		return Size(bytes), nil
	}
	return 0, fmt.Errorf("%q is not a size such as 512KiB, 1MiB or 10GiB", text)
}

// String returns the size in the largest binary unit that shows it exactly.
func (s Size) String() string {
	for _, u := range units()[:4] {
		if s != 0 && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText writes what String shows.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSize reads.
func (s *Size) UnmarshalText(b []byte) error {
	v, err := ParseSize(string(b))
	*s = v
	return err
}

// UnmarshalJSON reads a text or a number of bytes.
func (s *Size) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '"' {
		return s.UnmarshalText(b)
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	return s.UnmarshalText([]byte(text))
}

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
