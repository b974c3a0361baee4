package container_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

// conditions returns the conditions of mc: type to status and reason. Conditions that
// stay the same after the installation are left out.
func conditions(w *world) map[string]string {
	w.t.Helper()
	got := map[string]string{}
	for _, c := range w.get().Status.Conditions {
		require.NotEmpty(w.t, c.Message, c.Type)
		got[c.Type] = c.Status + " " + c.Reason
	}
	return got
}

// conditionRow is a transition, and the conditions after it.
type conditionRow struct {
	name string
	do   func()
	want map[string]string
}

const present, done, applied = "True Present", "True Done", "True Applied"

// installedAnd returns the conditions of an installed container, with Started and
// more.
func installedAnd(started string, more ...string) map[string]string {
	m := map[string]string{v1.ImageAvailable: present, v1.Installed: done, v1.Started: started}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

// firstRows lead from the creation to a requested stop.
func firstRows(w *world) []conditionRow {
	return []conditionRow{
		{"no answer of the registry", func() {
			w.engine.Outside.RemoveImage("i")
			w.engine.Outside.RefusePull("i", runtime.ErrStalled)
			w.create(nil)
		}, map[string]string{v1.ImageAvailable: "Unknown PullFailed", v1.Installed: "Unknown Installing"}},
		{"it installs", func() { w.engine.Outside.RefusePull("i", nil); time.Sleep(10 * time.Minute) },
			map[string]string{v1.ImageAvailable: present, v1.Installed: "Unknown Installing"}},
		{"it is ready", func() { w.engine.Outside.Exit(installer, 0) }, map[string]string{v1.ImageAvailable: present, v1.Installed: done}},
		{"it starts", func() { w.console.held.Store(true); w.change(on) }, installedAnd("Unknown Starting")},
		{"it exits while it starts", func() { w.engine.Outside.Exit(server, 0) }, installedAnd("False Exited")},
		{"it runs", func() { w.console.held.Store(false); w.change(on) }, installedAnd("True Running")},
		{"it exits", func() { w.engine.Outside.Exit(server, 0) }, installedAnd("False Exited")},
		{"it runs again", func() { w.change(on) }, installedAnd("True Running")},
		{"a stop is requested", func() { w.engine.Outside.Deafen(server); w.change(off) }, installedAnd("True Stopping")},
		{"it is stopped", func() { w.engine.Outside.Exit(server, 143) }, installedAnd("False Stopped")},
		{"it runs once more", func() { w.change(on) }, installedAnd("True Running")},
	}
}

// outsideRows lead through changes from outside.
func outsideRows(w *world) []conditionRow {
	host := w.engine.Outside.Host()
	return []conditionRow{
		{"it is killed", func() { w.change(kill) }, installedAnd("False Killed")},
		{"somebody starts it", func() { require.NoError(w.t, w.engine.Outside.StartOutside(server)) }, installedAnd("False Killed")},
		{"it runs as asked", func() { w.change(on) }, installedAnd("True Running")},
		{"the engine restarts", func() {
			w.refuse("start", server, runtime.ErrPortTaken)
			host.Shutdown()
			w.engine.Outside.Exit(server, 0)
			host.Down()
			host.Boot()
			time.Sleep(8 * time.Second)
		}, installedAnd("False PortTaken")},
		{"the port is free", func() { w.engine.Outside.Fail(nil); time.Sleep(time.Hour) }, installedAnd("True Running")},
	}
}

// limitRows lead through limits, a reinstallation, and the deletion.
func limitRows(w *world, size func(int64)) []conditionRow {
	agree := func() {}
	return []conditionRow{
		{"its limit is refused", func() {
			w.change(func(s *v1.ContainerSpec) { s.Limits.Memory = 1 << 29; s.RunGeneration++ })
			time.Sleep(time.Minute) // it ignores the signal
			agree = w.refuse("update", server, runtime.ErrInvalid)
			w.change(func(s *v1.ContainerSpec) { s.Limits.Memory = 1 << 30 })
		}, installedAnd("True Running", v1.LimitsApplied, "False Refused")},
		{"its limit is applied", func() {
			agree()
			w.change(func(s *v1.ContainerSpec) { s.Limits.Memory = 1 << 28 })
			time.Sleep(time.Minute)
		}, installedAnd("True Running", v1.LimitsApplied, applied)},
		{"its volume is full", func() { size(1001) }, installedAnd("True Running", v1.LimitsApplied, applied, v1.DiskPressure, "True OverLimit")},
		{"it is stopped for it", func() { time.Sleep(5 * time.Minute) }, installedAnd("False Stopped", v1.LimitsApplied, applied, v1.DiskPressure, "True OverLimit")},
		{"there is space", func() { size(1) }, installedAnd("True Running", v1.LimitsApplied, applied, v1.DiskPressure, "False WithinLimit")},
		{"it is reinstalled", func() { w.change(func(s *v1.ContainerSpec) { s.InstallGeneration++; off(s) }) },
			map[string]string{v1.ImageAvailable: present, v1.Installed: "Unknown Installing", v1.DiskPressure: "False WithinLimit"}},
		{"badly", func() { w.engine.Outside.Exit(installer, 3) },
			map[string]string{v1.ImageAvailable: present, v1.Installed: "False ExitCode", v1.DiskPressure: "False WithinLimit"}},
		{"it is deleted", func() {
			w.change(func(s *v1.ContainerSpec) { s.InstallGeneration++ })
			w.engine.Outside.Exit(installer, 0)
			w.change(on)
			w.refuse("kill", server, runtime.ErrUnavailable)
			require.NoError(w.t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Delete(tx, "mc") }))
		}, installedAnd("Unknown Deleting", v1.DiskPressure, "False WithinLimit", v1.Reconciled, "False KillServerFailed")},
	}
}

// TestConditions walks every type of condition through every transition.
// Each row begins in the final state of the one before.
func TestConditions(t *testing.T) {
	live(t, func(w *world) {
		size := w.limited()
		for _, row := range slices.Concat(firstRows(w), outsideRows(w), limitRows(w, size)) {
			row.do()
			got := conditions(w)
			if row.want[v1.Reconciled] == "" {
				require.NotContains(t, got[v1.Reconciled], v1.False, row.name)
				delete(got, v1.Reconciled)
			}
			require.Equal(t, row.want, got, "%s: %+v", row.name, w.get().Status)
		}
	})
}
