package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

// TestConditionsWaitForTheStore: what cannot be stored is stored later, once and in order.
func TestConditionsWaitForTheStore(t *testing.T) {
	var stored []string
	var broken error
	c := newConditions(func(c v1.Condition) error {
		if broken == nil {
			stored = append(stored, c.Reason)
		}
		return broken
	})
	c.set(engineCondition(nil, 0))
	c.set(engineCondition(nil, 0))
	require.Equal(t, []string{"Answers"}, stored)
	broken = errors.New("broken")
	for range 3 {
		c.set(storeCondition(store.ErrDiskFull, 0))
		c.set(engineCondition(broken, 0))
	}
	c.set(engineCondition(nil, time.Minute))
	require.Len(t, stored, 1)
	broken = nil
	c.set(storeCondition(nil, time.Minute))
	require.Equal(t, []string{"Answers", "NotWritable", "EngineUnreachable", "Answers", "Writable"}, stored)
}

func TestWaitingConditionsAreBounded(t *testing.T) {
	broken := errors.New("broken")
	c := newConditions(func(v1.Condition) error { return broken })
	for range maxWaiting {
		c.set(engineCondition(broken, 0))
		c.set(engineCondition(nil, 0))
	}
	require.Len(t, c.waiting, maxWaiting)
	require.Equal(t, v1.True, c.waiting[maxWaiting-1].Status, "the newest are kept")
}

func TestConditionsNameTheDuration(t *testing.T) {
	require.Equal(t, "the engine answers again, after 2m38s", engineCondition(nil, 2*time.Minute+38*time.Second).Message)
	require.Equal(t, "the engine answers again", engineCondition(nil, 0).Message, "berth has just started")
	require.Equal(t, "store: the disk is full: requests are refused, except stop and kill", storeCondition(store.ErrDiskFull, 0).Message)
}
