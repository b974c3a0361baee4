package cli

import (
	"fmt"
	"time"
)

// The absolute times that people read are local ones with their zone. JSON and YAML are the
// daemon's response, in UTC.
const (
	dateFormat = "2006-01-02 15:04:05 -0700"
	timeFormat = "2006-01-02 15:04:05.000 -0700"
)

// date returns a time as people read it, to the second.
func date(at time.Time) string { return at.In(time.Local).Format(dateFormat) }

// dateOf returns a time of a response as people read it; another text as it is.
func dateOf(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return date(at)
}

// age returns the time since then in at most two units.
func age(since time.Time, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return span(now.Sub(since))
}

// span returns a duration in at most two units, such as 3m20s.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}
