package ui_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// TestSchedules makes, runs, changes and deletes a schedule on a narrow screen.
func TestSchedules(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Create(t, "mc", berthtest.Spec{"startup_command": "echo up; while read -r l; do echo got $l; done", "start_pattern": "^up", "power": "running"})
	b.State(t, "mc", "running")
	p := openTab(t)
	p.login(b, b.Token)
	p.do(chromedp.EmulateViewport(390, 844))
	p.goTo("#/containers/mc/schedules")
	p.shows(".empty", "The container has no schedule yet.")
	p.click("button", "New schedule")
	p.fill("Name", "nightly")
	p.fill("Times", "0 25 * * *")
	p.fill("Time zone", "Europe/Berlin")
	p.fill("Value of step 1", "hello")
	p.click("button", "Add a step")
	p.choose("Kind of step 2", "wait")
	p.fill("Value of step 2", "2h")
	p.click("dialog button", "Store")
	p.until("the times are refused", "document.activeElement?.id === 'field-cron'")
	p.shows("#steps-error", "Step 2, wait, must be between 1s and 1h.")
	p.until("no scrolling sideways", "document.documentElement.scrollWidth <= 390")
	p.axe("a schedule")
	p.shot("schedule-390")
	p.fill("Times", "0 4 * * *")
	p.click("button", "Move step 2 up")
	p.fill("Value of step 1", "1s")
	p.answer("Store")
	p.shows("td", "wait 1s → hello")
	p.shows("td", "never ran")
	p.axe("schedules")
	p.shot("schedules-390")
	get := func() v1.ScheduleView {
		list, err := b.API.Schedules().List(t.Context(), "mc")
		require.NoError(t, err)
		require.Len(t, list, 1)
		return list[0]
	}
	s := get()
	require.Equal(t, []v1.ScheduleStep{{Wait: v1.Duration(time.Second)}, {Command: "hello"}}, s.Steps)
	require.Equal(t, []any{"nightly", "0 4 * * *", "Europe/Berlin", v1.IfRunning}, []any{s.Name, s.Cron, s.Timezone, s.If})

	p.click("button", "Run now: nightly")
	p.shows("td", "completed")
	require.Contains(t, string(b.Must(t, "GET", "/containers/mc/logs", nil).Body), "got hello")
	p.click("button", "Turn off nightly")
	p.shows(".pill.idle", "off")
	require.False(t, *get().Enabled)
	p.click("button", "Turn on nightly")
	p.until("it is on", "!!test.find('button', 'Turn off nightly')")
	p.click("button", "Change nightly")
	p.click("button", "Remove step 1")
	p.choose("Missed while berth was away", "once")
	p.answer("Store")
	p.until("the change", "!test.says('td', 'wait 1s')")
	require.Equal(t, v1.MissedOnce, get().Missed)
	p.click("button", "Delete nightly")
	p.answer("Delete")
	p.shows(".empty", "The container has no schedule yet.")
	p.clean(b)
}
