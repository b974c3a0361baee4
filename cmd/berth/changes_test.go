package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/runtime/kubernetes"
	"berth/store"
)

// TestReportChanges: a cluster gets states and warnings, a bounded number of each container, none that is old, and
// none again after one was refused.
func TestReportChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open("", store.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		d := &daemon{store: db, log: slog.New(slog.DiscardHandler)}
		emit := func(list ...v1.Event) {
			require.NoError(t, db.Update(func(tx *store.Tx) error {
				for _, e := range list {
					tx.Emit(e)
				}
				return nil
			}))
		}
		emit(v1.Event{Container: "early", Event: v1.EventState, Data: "running"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		gate := make(chan struct{}, 1000)
		ended := make(chan error)
		go func() {
			ended <- d.reportChanges(ctx, func(_ context.Context, c kubernetes.Change) error {
				got = append(got, fmt.Sprint(c.Name.Role, " ", c.Name.ID, " ", c.Warning, " ", c.Reason, ": ", c.Text))
				<-gate
				return errors.New("refused")
			})
		}()
		synctest.Wait()
		code, next := 3, time.Now()
		gate <- struct{}{}
		emit(v1.Event{Container: "a", Event: v1.EventState, Data: "installing"})
		synctest.Wait()
		for range 3 {
			gate <- struct{}{}
		}
		emit(v1.Event{Container: "a", Event: v1.EventState, Data: "exit", Reason: "Crashed", ExitCode: &code, NextRetryAt: &next},
			v1.Event{Container: "a", Event: v1.EventMessage, Data: "pulling"},
			v1.Event{Container: "a", Event: v1.EventMessage, Data: "no room", Reason: "NoRoom"},
			v1.Event{Event: v1.EventMessage, Data: "the node", Reason: "Disk"},
			v1.Event{Container: "a", Event: v1.EventState, Data: "deleting"},
			v1.Event{Container: "b", Event: v1.EventState, Data: "failed", Reason: "InvalidSpec"})
		synctest.Wait()
		require.Equal(t, []string{
			"install a false Installing: container a is installing",
			"server a true Exit: container a is exit: Crashed, exit code 3",
			"server a true NoRoom: no room",
			"server b true Failed: container b is failed: InvalidSpec",
		}, got)
		require.Len(t, got, 4)

		// The API server hangs: the store goes on, and what is old by then is dropped.
		emit(v1.Event{Container: "c", Event: v1.EventState, Data: "running"})
		synctest.Wait()
		emit(v1.Event{Container: "c", Event: v1.EventState, Data: "exit"})
		time.Sleep(staleChange + time.Second)
		gate <- struct{}{}
		synctest.Wait()
		require.Len(t, got, 5)

		for range 900 {
			gate <- struct{}{}
		}
		for range 400 {
			emit(v1.Event{Container: "d", Event: v1.EventState, Data: "starting"}, v1.Event{Container: "d", Event: v1.EventState, Data: "exit"})
		}
		synctest.Wait()
		require.Len(t, got, 5+25)
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestReportNothing: other engines and other transitions have no events.
func TestReportNothing(t *testing.T) {
	for _, e := range []v1.Event{{}, {Container: "a", Event: v1.EventState}, {Container: "a", Event: "backup", Data: "done"}} {
		_, shown := clusterChange(e)
		require.False(t, shown, e)
	}
	c, _ := clusterChange(v1.Event{Container: "a", Event: v1.EventState, Data: "running"})
	require.Equal(t, kubernetes.Change{Name: runtime.Name{ID: "a", Role: runtime.Server}, Reason: "Running", Text: "container a is running"}, c)
}
