package main

import (
	"context"
	"errors"
	"fmt"

	v1 "berth/api/v1"
	"berth/controller/console"
	"berth/controller/stats"
	"berth/runtime"
	"berth/store"
)

// diskUsage returns the size of a container's volume, as last measured.
func diskUsage(s *store.Store, id string) (bytes int64, known bool) {
	err := s.View(func(tx *store.Tx) error {
		c, err := store.Containers.Get(tx, id)
		if err != nil {
			return err
		}
		v, err := store.Volumes.Get(tx, c.Spec.VolumeID)
		bytes = v.Status.Size
		return err
	})
	return bytes, err == nil
}

// input adapts the consoles to the interface of package server.
type input struct{ consoles *console.Manager }

// Send writes to a running container's standard input.
func (i input) Send(ctx context.Context, id string, data []byte) error {
	return refusal(i.consoles.Input(ctx, id, data))
}

// refusal returns the client's error for an error of the engine.
func refusal(err error) error {
	switch {
	case errors.Is(err, runtime.ErrNotRunning), errors.Is(err, runtime.ErrNotFound):
		return v1.ErrNotRunning
	case errors.Is(err, runtime.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", v1.ErrEngineUnavailable, err)
	}
	return err
}

// statsAdapter adapts the sampler to the interface of package server.
type statsAdapter struct{ sampler *stats.Sampler }

// Stats measures a running container.
func (s statsAdapter) Stats(ctx context.Context, id string) (v1.Stats, error) {
	sample, err := s.sampler.Sample(ctx, id)
	return sample, refusal(err)
}

// Samples measures the running ones of some containers.
func (s statsAdapter) Samples(ctx context.Context, ids []string) map[string]v1.Stats {
	return s.sampler.Samples(ctx, ids)
}
