package v1

import (
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
)

// cronCase is an expression with a rule that was written without it.
type cronCase struct {
	expression string
	due        func(shown time.Time) bool // whether the clock shows a due minute
}

func cronCases() []cronCase {
	at := func(hour, minute int) func(time.Time) bool {
		return func(t time.Time) bool { return t.Hour() == hour && t.Minute() == minute }
	}
	return []cronCase{
		{"0 4 * * *", at(4, 0)},
		{"@daily", at(0, 0)},
		{"30 2 * * *", at(2, 30)},
		{"15 2 * * *", at(2, 15)},
		{"45 1 * * *", at(1, 45)},
		{"30 1 * * SUN", func(t time.Time) bool { return at(1, 30)(t) && t.Weekday() == time.Sunday }},
		{"*/20 1-3 * * *", func(t time.Time) bool { return t.Hour() >= 1 && t.Hour() <= 3 && t.Minute()%20 == 0 }},
		{"@hourly", func(t time.Time) bool { return t.Minute() == 0 }},
		{"5 0 29 feb *", func(t time.Time) bool { return at(0, 5)(t) && t.Month() == time.February && t.Day() == 29 }},
		{"0 12 13 * 5", func(t time.Time) bool { return at(12, 0)(t) && (t.Day() == 13 || t.Weekday() == time.Friday) }},
	}
}

const cronYear = 2024

// independent returns the due times of each case in a year: it asks each minute of the year what the clock
// shows. The first one that shows a due minute is due, and of minutes that the clock never shows the first after them.
func independent(cases []cronCase, in *time.Location) [][]time.Time {
	lists := make([][]time.Time, len(cases))
	from, to := time.Date(cronYear, 1, 1, 0, 0, 0, 0, in), time.Date(cronYear+1, 1, 1, 0, 0, 0, 0, in)
	highest := clockOf(from).Add(-time.Minute) // that the clock has shown
	for t := from; t.Before(to); t = t.Add(time.Minute) {
		shown, due := clockOf(t.In(in)), make([]bool, len(cases))
		for ; highest.Before(shown); highest = highest.Add(time.Minute) { // the minutes that were left out, and this one
			for i, c := range cases {
				due[i] = due[i] || c.due(highest.Add(time.Minute))
			}
		}
		for i, is := range due {
			if is {
				lists[i] = append(lists[i], t.UTC())
			}
		}
	}
	return lists
}

// TestCronAgainstAnIndependentCalculation: a year with its changes of daylight saving time, of half an hour too.
// The next time does not depend on when it is asked for, in the hour that exists twice and around the gap as well.
func TestCronAgainstAnIndependentCalculation(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"} {
		in, err := time.LoadLocation(zone)
		require.NoError(t, err)
		first, last := time.Date(cronYear, 1, 1, 0, 0, 0, 0, in), time.Date(cronYear+1, 1, 1, 0, 0, 0, 0, in)
		for i, list := range independent(cronCases(), in) {
			c, err := ParseCron(cronCases()[i].expression, zone)
			require.NoError(t, err)
			var got []time.Time
			for at := c.Next(first.Add(-time.Second)); at.Before(last); at = c.Next(at) {
				got = append(got, at.UTC())
			}
			require.Equal(t, list, got, "%s in %s", cronCases()[i].expression, zone)
			for _, day := range []string{"2024-03-10", "2024-03-30", "2024-04-06", "2024-10-05", "2024-10-26", "2024-11-03"} {
				begin, err := time.Parse(time.DateOnly, day)
				require.NoError(t, err)
				for after := begin; after.Before(begin.Add(36 * time.Hour)); after = after.Add(17*time.Minute + 3*time.Second) {
					next := slices.IndexFunc(list, after.Before)
					if next >= 0 {
						require.True(t, list[next].Equal(c.Next(after)), "%s in %s after %s", cronCases()[i].expression, zone, after)
					}
				}
			}
		}
	}
}

func TestCronRefuses(t *testing.T) {
	for expression, text := range map[string]string{
		"":              "empty",
		"* * * *":       "expected exactly 5 fields",
		"* * * * * *":   "expected exactly 5 fields",
		"60 * * * *":    "above maximum",
		"0 0 30 2 *":    "it names no time",
		"TZ=UTC":        "not a cron expression",
		"@every 59s":    "at least 1m apart",
		"@yesterday":    "unrecognized",
		"@start":        "unrecognized",
		"0 4 * * mond":  "failed to parse",
		"*/0 * * * *":   "step of range",
		"@every -1h":    "at least 1m apart",
		"@reboot later": "unrecognized",
	} {
		_, err := ParseCron(expression, "")
		require.ErrorContains(t, err, text, expression)
	}
	_, err := ParseCron("@daily", "Mars/Olympus")
	require.Error(t, err)
	c, err := ParseCron("@every 90m", "")
	require.NoError(t, err)
	require.Equal(t, time.Unix(5400, 0).UTC(), c.Next(time.Unix(0, 0)).UTC())
}
