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
	files    *limit.Slots // all file operations
	walks    *limit.Slots // searches and copies
	archives *limit.Slots // compressions and extractions: each uses tens of MB of memory
	lists    *limit.Slots // lists while they are read
}

func newPermits() permits {
	return permits{files: limit.NewSlots(limit.FileOperations), walks: limit.NewSlots(limit.Walks),
		archives: limit.NewSlots(limit.Archives), lists: limit.NewSlots(limit.Lists)}
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

// paces count the requests of tokens that are limited to containers. All tokens of a tenant
// are counted together, because a tenant may have many. Other tokens are never refused.
type paces struct {
	starts *limit.Rate // see limit.Starts
	jobs   *limit.Rate // see limit.Jobs
}

func newPaces() paces { return paces{limit.NewRate(limit.Starts()), limit.NewRate(limit.Jobs())} }

// start counts a request that starts or creates a container, or returns a *v1.RetryError if
// there were too many.
func (p paces) start(caller auth.Principal, container string) error {
	if !caller.Restricted() || !caller.CanAccess(container) {
		return nil
	}
	return refusedFor(p.starts.Take(container, 1), limit.Starts(), v1.TooManyStarts, "Container was started too often with tokens like this one")
}

// job counts a request that begins or removes a backup, a restore or a download, or returns a
// *v1.RetryError if there were too many.
func (p paces) job(caller auth.Principal) error {
	if !caller.Restricted() {
		return nil
	}
	return refusedFor(p.jobs.Take(caller.Tenant(), 1), limit.Jobs(), v1.TooManyJobs, "Too many backups and downloads with tokens like this one")
}

// refusedFor returns the refusal of what would have to wait; nil for 0.
func refusedFor(left time.Duration, pace limit.Pace, code v1.Code, text string) error {
	if left == 0 {
		return nil
	}
	return &v1.RetryError{After: left, Refused: v1.Errorf(code, "%s: at most %d times at once, then every %s; try again in %s",
		text, pace.Burst, pace.Every, max(left, time.Second).Round(time.Second))}
}
