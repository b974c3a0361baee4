package v1_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestSetConditionKeepsSince(t *testing.T) {
	first, later := time.Unix(1, 0), time.Unix(2, 0)
	list := v1.SetCondition(nil, v1.Condition{Type: "A", Status: v1.True, Reason: "Old"}, first)
	list = v1.SetCondition(list, v1.Condition{Type: "B", Status: v1.False}, first)
	list = v1.SetCondition(list, v1.Condition{Type: "A", Status: v1.True, Reason: "New"}, later)
	require.Equal(t, v1.Condition{Type: "A", Status: v1.True, Reason: "New", Since: first}, v1.FindCondition(list, "A"))
	list = v1.SetCondition(list, v1.Condition{Type: "A", Status: v1.False}, later)
	require.Equal(t, later, v1.FindCondition(list, "A").Since)
	require.Equal(t, first, v1.FindCondition(list, "B").Since)
	require.Len(t, list, 2)
	require.Zero(t, v1.FindCondition(list, "C"))
}
