package server

import (
	"context"
	"time"

	"berth/api/auth"
	"berth/api/limit"
	"berth/api/server/edge"
	v1 "berth/api/v1"
)

// permits bound the file descriptors, CPU and memory that file operations use. See
// ADR 0013.
type permits struct {
	files      *limit.Slots // all file operations
	walks      *limit.Slots // searches and copies
	archives   *limit.Slots // compressions and extractions: each uses tens of MB of memory
	lists      *limit.Slots // lists while they are read
	largeLists *limit.Slots // large ones until they are sent
}

func newPermits() permits {
	return permits{
		files:      limit.NewSlots(limit.FileOperations),
		walks:      limit.NewSlots(limit.Walks),
		archives:   limit.NewSlots(limit.Archives),
		lists:      limit.NewSlots(limit.Lists),
		largeLists: limit.NewSlots(limit.LargeLists),
	}
}

// enter waits for a permit of each of all, except for those that are nil, for the caller's operation
// on an object. It returns edge.ErrOperations if too many wait.
func enter(ctx context.Context, caller auth.Principal, object string, all ...*limit.Slots) (leave func(), err error) {
	var leaves []func()
	leave = func() {
		for _, one := range leaves {
			one()
		}
	}
	for _, slots := range all {
		if slots == nil {
			continue
		}
		one, err := slots.Enter(ctx, limit.Claim{Tenant: caller.Tenant(), Object: object})
		switch {
		case ctx.Err() != nil && err != nil:
			leave()
			return func() {}, ctx.Err()
		case err != nil:
			leave()
			return func() {}, edge.ErrOperations
		}
		leaves = append(leaves, one)
	}
	return leave, nil
}

// takeStart counts a request that starts or creates a container, or returns a *v1.RetryError if
// there were too many. It counts those of all tokens that are limited to containers together,
// because a tenant may have many. Other tokens are never refused.
func takeStart(starts *limit.Rate, p auth.Principal, container string) error {
	if !p.Restricted() || !p.CanAccess(container) {
		return nil
	}
	left := starts.Take(container, 1)
	if left == 0 {
		return nil
	}
	pace := limit.Starts()
	return &v1.RetryError{After: left, Refused: v1.Errorf(v1.TooManyStarts,
		"Container was started too often with tokens like this one: at most %d times at once, then every %s; try again in %s",
		pace.Burst, pace.Every, max(left, time.Second).Round(time.Second))}
}
