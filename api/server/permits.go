package server

import (
	"context"
	"time"

	"berth/api/auth"
	"berth/api/limit"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// permits bound the file descriptors, CPU and memory that file operations and console history use. See
// ADR 0013.
type permits struct {
	files    *limit.Slots // all file operations
	walks    *limit.Slots // searches and copies
	archives *limit.Slots // compressions and extractions: each uses tens of MB of memory
	streams  *limit.Slots // archives that are sent or received
	lists    *limit.Slots // lists while they are read
	history  *limit.Slots // history of consoles while it is read
}

func newPermits() permits {
	return permits{files: limit.NewSlots(limit.FileOperations), walks: limit.NewSlots(limit.Walks),
		archives: limit.NewSlots(limit.Archives), streams: limit.NewSlots(limit.ArchiveStreams), lists: limit.NewSlots(limit.Lists),
		history: limit.NewSlots(limit.Histories)}
}

// enter waits for a permit of each of all, except for those that are nil. It returns
// edge.ErrOperations if too many wait.
func enter(ctx context.Context, claim limit.Claim, all ...*limit.Slots) (leave func(), err error) {
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
		one, err := slots.Enter(ctx, claim)
		if limit.IsRefusal(err) {
			err = edge.ErrOperations
		}
		if err != nil {
			leave()
			return func() {}, err
		}
		leaves = append(leaves, one)
	}
	return leave, nil
}

// enter waits for a permit until the client leaves.
func (c *call) enter(db *store.Store, object string, slots *limit.Slots) (leave func(), err error) {
	ctx, cancel := edge.Context(c.Ctx)
	defer cancel()
	return enter(ctx, c.claim(db, object), slots)
}

// paces count the requests of tokens that are limited to containers. All tokens of a tenant
// are counted together, because a tenant may have many. Other tokens are never refused.
type paces struct {
	starts *limit.Rate // see limit.Starts
	jobs   *limit.Rate // see limit.Jobs

	resizes *limit.Rate // see limit.Resizes: of all tokens
}

func newPaces() paces {
	return paces{limit.NewRate(limit.Starts()), limit.NewRate(limit.Jobs()), limit.NewRate(limit.Resizes())}
}

// start counts a request that starts a container, or returns a *v1.RetryError if
// there were too many.
func (p paces) start(caller auth.Principal, container string) error {
	if !caller.Restricted() || !caller.CanAccess(container) {
		return nil
	}
	return refusedFor(p.starts.Take(container, 1), limit.Starts(), v1.TooManyStarts,
		"Container was started too often with tokens like this one")
}

// job counts a request that begins or removes a backup, a restore or a download, or returns a
// *v1.RetryError if there were too many.
func (p paces) job(caller auth.Principal) error {
	if !caller.Restricted() {
		return nil
	}
	return refusedFor(p.jobs.Take(caller.Tenant(), 1), limit.Jobs(), v1.TooManyJobs,
		"Too many backups and downloads with tokens like this one")
}

// refusedFor returns the refusal of what would have to wait; nil for 0.
func refusedFor(left time.Duration, pace limit.Pace, code v1.Code, text string) error {
	if left == 0 {
		return nil
	}
	return &v1.RetryError{After: left, Refused: v1.Errorf(code, "%s: at most %d times at once, then every %s; try again in %s",
		text, pace.Burst, pace.Every, max(left, time.Second).Round(time.Second))}
}
