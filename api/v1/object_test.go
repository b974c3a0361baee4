package v1_test

import (
	"slices"
	"strings"
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

func TestMessageText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"plain":                              "plain",
		" a\r\n\tb\x1b[0m \x00c\u202ed \xff": "a b [0m c d",
		strings.Repeat("ä", 250):             strings.Repeat("ä", 250),
		strings.Repeat("ä", 251):             strings.Repeat("ä", 248) + "…",
		strings.Repeat("\n", 1<<20) + "x":    "…",
	} {
		require.Equal(t, want, v1.MessageText(text))
		require.Equal(t, want, v1.MessageText(want), "it stays")
	}
}

// TestNewestFirst: the last creation comes first, also after the clock was set back. Objects of
// a berth that stored no revision of the creation are older than all others.
func TestNewestFirst(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	object := func(id string, created uint64, at time.Duration) v1.Backup {
		return v1.Backup{Meta: v1.Meta{ID: id, Created: created, CreatedAt: now.Add(at)}}
	}
	list := []v1.Backup{
		object("legacy", 0, time.Hour), object("before", 7, time.Hour), object("legacy, newer", 0, 2*time.Hour),
		object("after", 8, -time.Hour), object("b", 9, 0), object("a", 9, 0),
	}
	slices.SortFunc(list, v1.NewestFirst[v1.BackupSpec, v1.BackupStatus])
	var ids []string
	for _, b := range list {
		ids = append(ids, b.Meta.ID)
	}
	require.Equal(t, []string{"a", "b", "after", "before", "legacy, newer", "legacy"}, ids)
}
