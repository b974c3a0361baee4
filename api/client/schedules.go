package client

import (
	"context"
	"net/http"
	"net/url"

	v1 "berth/api/v1"
)

// Schedules are the calls for the schedules of containers.
type Schedules struct{ c *Client }

func schedulePath(container, name string) string {
	return containerPath(container) + "/schedules/" + url.PathEscape(name)
}

// List returns the schedules of a container, sorted by name.
func (s Schedules) List(ctx context.Context, container string) ([]v1.ScheduleView, error) {
	return list[[]v1.ScheduleView](ctx, s.c, containerPath(container)+"/schedules", "schedules")
}

// Get returns a schedule.
func (s Schedules) Get(ctx context.Context, container, name string) (v v1.ScheduleView, err error) {
	err = s.c.get(ctx, schedulePath(container, name), &v)
	return v, err
}

// Set replaces a schedule as a whole, and returns it.
func (s Schedules) Set(ctx context.Context, container, name string, spec v1.ScheduleSpec) (set v1.ScheduleView, err error) {
	err = s.c.Call(ctx, http.MethodPut, schedulePath(container, name), v1.Shown(spec), &set)
	return set, err
}

// Delete removes a schedule, and ends its run.
func (s Schedules) Delete(ctx context.Context, container, name string) error {
	return s.c.Call(ctx, http.MethodDelete, schedulePath(container, name), nil, nil)
}

// Run requests a run of a schedule, now.
func (s Schedules) Run(ctx context.Context, container, name string) error {
	return s.c.Call(ctx, http.MethodPost, schedulePath(container, name)+"/run", nil, nil)
}
