package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	"berth/store"
)

func TestSchedules(t *testing.T) {
	h, _ := newShelved(t)
	h.container("mc", h.volume())
	path := "/containers/mc/schedules/nightly"
	h.refuse(404, "Container not found", "GET", "/containers/no/schedules", nil)
	h.refuse(404, "Container not found", "PUT", "/containers/no/schedules/nightly", object{"cron": "@daily", "steps": []object{{"power": "stop"}}})
	for _, method := range []string{"GET", "DELETE"} {
		h.refuse(404, "Schedule not found", method, path, nil)
	}
	h.refuse(404, "Schedule not found", "POST", path+"/run", nil)
	require.Equal(t, []any{}, h.must("GET", "/containers/mc/schedules", nil).json["schedules"])

	body := object{"cron": "0 4 * * *", "steps": []object{{"command": "say hi"}, {"wait": "1m"}, {"backup": object{"keep": 7}}, {"power": "restart"}}}
	s := h.must("PUT", path, body).json
	require.Equal(t, s, h.must("GET", path, nil).json)
	require.Equal(t, []any{s}, h.must("GET", "/containers/mc/schedules", nil).json["schedules"])
	require.Equal(t, map[string]any{"next_run": nil, "last_run": nil, "runs": 0.0}, s["status"])
	for field, value := range map[string]any{"name": "nightly", "timezone": "UTC", "if": "running", "missed": "skip", "enabled": true} {
		require.Equal(t, value, s[field], field)
	}
	require.Equal(t, s, h.must("PUT", path, s).json, "the answer is a valid request")
	require.Equal(t, "always", h.must("PUT", "/containers/mc/schedules/again", object{"cron": "@crash", "steps": []object{{"power": "start"}}}).json["if"])
	h.must("POST", path+"/run", nil)
	o, err := intent.FindSchedule(h.store.Read(), "mc", "nightly")
	require.NoError(t, err)
	require.Equal(t, uint64(1), o.Spec.RunGeneration)
	h.must("DELETE", path, nil)
	h.refuse(404, "Schedule not found", "DELETE", path, nil)
	for i := range 19 {
		h.must("PUT", fmt.Sprintf("/containers/mc/schedules/s%d", i), body)
	}
	h.refuse(429, "Container has 20 schedules: delete one of them first", "PUT", path, body)
	h.must("PUT", "/containers/mc/schedules/s1", body)
	h.must("DELETE", "/containers/mc", nil)
	require.Empty(t, store.Schedules.IDs(h.store.Read()), "they go with their container")
}

func TestSchedulesAreChecked(t *testing.T) {
	h, _ := newShelved(t)
	h.container("mc", h.volume())
	path := "/containers/mc/schedules/x"
	h.refuse(400, "cron: is required; steps: is required", "PUT", path, object{})
	h.refuse(400, "name: must be 1 to 32 lower-case letters, digits and hyphens", "PUT", "/containers/mc/schedules/X", object{"cron": "@daily", "steps": []object{{"power": "stop"}}})
	for text, change := range map[string]object{
		`cron: must be five fields such as "0 4 * * *", a name such as @daily, or @start, @exit or @crash: expected exactly 5 fields, found 1: [soon]`: {"cron": "soon"},
		"timezone: must be the name of an IANA time zone such as Europe/Berlin":                                                                        {"timezone": "Local"},
		"if: must be running or always":  {"if": "never"},
		"missed: must be skip or once":   {"missed": "twice"},
		"steps: must have 1 to 16 steps": {"steps": []object{}},
		"steps: must have at most 16384 bytes of JSON in all": {"steps": []object{{"command": strings.Repeat("a", 4095)}, {"command": strings.Repeat("a", 4095)},
			{"command": strings.Repeat("a", 4095)}, {"command": strings.Repeat("a", 4095)}}},
	} {
		body := object{"cron": "@daily", "steps": []object{{"power": "stop"}}}
		for field, value := range change {
			body[field] = value
		}
		h.refuse(400, text, "PUT", path, body)
	}
	for text, step := range map[string]object{
		"steps[0]: must have exactly one of command, wait, power, backup and wait_for":                  {"continue": true},
		"steps[0].command: must be one line of at most 4095 bytes without NUL":                          {"command": "a\nb"},
		"steps[0].wait: must be between 1s and 1h":                                                      {"wait": "61m"},
		"steps[0].power: must be start, stop, restart or kill":                                          {"power": "on"},
		"steps[0].wait_for: must be running, exit, ready or failed":                                     {"wait_for": "starting", "timeout": "1m"},
		"steps[0].timeout: must be between 1s and 1h":                                                   {"wait_for": "running"},
		"steps[0].timeout: must be beside wait_for":                                                     {"power": "stop", "timeout": "1m"},
		"steps[0].backup.keep: must be between 1 and 1000; steps[0].backup.target: must be local or s3": {"backup": object{"keep": 0, "target": "tape"}},
		"steps[0].backup.quiesce.container: must be the container of the schedule":                      {"backup": object{"keep": 1, "quiesce": object{"container": "other"}}},
	} {
		h.refuse(400, text, "PUT", path, object{"cron": "@daily", "steps": []object{step}})
	}
	h.refuse(400, "steps[0]: must have exactly one of command, wait, power, backup and wait_for", "PUT", path,
		object{"cron": "@daily", "steps": []object{{"power": "stop", "wait": "1s"}}})
}

// TestScheduleNeedsAdmin: a customer's token neither sees nor changes schedules.
func TestScheduleNeedsAdmin(t *testing.T) {
	h, _ := newShelved(t)
	h.container("mc", h.volume())
	token := h.mint(object{"scopes": []string{"read", "power", "console", "files"}, "containers": []string{"mc"}, "ttl": "1h"})
	for _, r := range []request{{method: "GET", path: "/containers/mc/schedules"}, {method: "GET", path: "/containers/mc/schedules/x"}, {method: "DELETE", path: "/containers/mc/schedules/x"},
		{method: "PUT", path: "/containers/mc/schedules/x", body: `{}`}, {method: "POST", path: "/containers/mc/schedules/x/run"}} {
		r.token = token
		require.Equal(t, 403, h.do(r).status, r.path)
	}
}
