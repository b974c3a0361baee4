package volume

import (
	"context"
	"time"

	"berth/runtime"
)

const (
	smallConfig = 256 << 10        // bytes of a configuration file and its values that are parsed at once
	configWait  = 10 * time.Second // for the parse of other large files
)

// configSlot bounds the memory of configuration files that are parsed: one large file at
// a time, first come, first served. A small one never waits, so that no container with
// large files delays those with usual ones.
type configSlot chan struct{}

func newConfigSlot() configSlot { return make(configSlot, 1) }

// enter waits until a file of a size may be parsed. The caller calls leave at the end.
// The error is runtime.ErrConfigBusy.
func (s configSlot) enter(ctx context.Context, size int64) (leave func(), err error) {
	if size <= smallConfig {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, configWait)
	defer cancel()
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, runtime.ErrConfigBusy
	}
}
