package container

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// slowEngine returns its instance when it is asked to.
type slowEngine struct {
	Engine
	asked  chan struct{}
	answer chan string
}

func (e slowEngine) Instance(context.Context) (string, error) {
	e.asked <- struct{}{}
	return <-e.answer, nil
}

// TestOlderInstanceIsNotRecorded: of two calls that overlap a restart of the engine, the one
// that began first returns last.
func TestOlderInstanceIsNotRecorded(t *testing.T) {
	i, first := &instances{}, slowEngine{asked: make(chan struct{}), answer: make(chan string)}
	second := slowEngine{asked: make(chan struct{}, 1), answer: make(chan string, 1)}
	got := make(chan string)
	go func() {
		instance, _ := i.query(t.Context(), first)
		got <- instance
	}()
	<-first.asked
	second.answer <- "new"
	instance, err := i.query(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, "new", instance)
	first.answer <- "old"
	require.Equal(t, "new", <-got)
	require.Equal(t, "new", i.last())
}
