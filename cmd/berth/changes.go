package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/runtime"
	"berth/runtime/kubernetes"
	"berth/store"
)

// staleChange is the age from which a transition is not reported to the cluster: its API server was away, and an
// event has the time of its creation.
const staleChange = time.Minute

// reportChanges creates events of the cluster for the transitions that people look for there, until ctx ends. One that
// cannot be created is dropped, as are those of a container that are too many: nothing depends on them.
func (d *daemon) reportChanges(ctx context.Context, report func(context.Context, kubernetes.Change) error) error {
	rate := limit.NewRate(limit.ClusterEvents())
	for ctx.Err() == nil {
		_, newest := d.store.Read().EventBounds()
		for e, err := range d.store.Events(ctx, newest) {
			if errors.Is(err, store.ErrClosed) {
				return err
			}
			if err != nil { // they were removed before they were read
				break
			}
			c, shown := clusterChange(e)
			if !shown || time.Since(e.Time) > staleChange || rate.Take(e.Container, 1) > 0 {
				continue
			}
			if err := report(ctx, c); err != nil && !errors.Is(err, runtime.ErrNotFound) && ctx.Err() == nil {
				d.log.Debug("cannot create an event of the cluster", "container", e.Container, "err", err)
			}
		}
	}
	return nil
}

// clusterChange returns a state or a warning as an event of a pod. It reports false for other transitions.
func clusterChange(e v1.Event) (c kubernetes.Change, shown bool) {
	c = kubernetes.Change{Name: runtime.Name{ID: e.Container, Role: runtime.Server}, Reason: e.Reason, Text: e.Data, Warning: true}
	switch phase := v1.Phase(e.Data); {
	case e.Container == "":
		return c, false
	case e.Event == v1.EventMessage:
		return c, e.Reason != ""
	case e.Event != v1.EventState, phase == "", phase == v1.Deleting:
		return c, false
	case phase == v1.Installing:
		c.Name.Role = runtime.Install
	}
	c.Reason = strings.ToUpper(e.Data[:1]) + e.Data[1:]
	c.Text = fmt.Sprintf("container %s is %s", e.Container, e.Data)
	if e.Reason != "" {
		c.Text += ": " + e.Reason
	}
	if e.ExitCode != nil {
		c.Text += fmt.Sprintf(", exit code %d", *e.ExitCode)
	}
	c.Warning = v1.Phase(e.Data) == v1.Failed || e.NextRetryAt != nil
	return c, true
}
