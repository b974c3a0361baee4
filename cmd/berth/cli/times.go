package cli

import "time"

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
