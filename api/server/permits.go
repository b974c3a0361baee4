package server

import "berth/api/server/edge"

// permits bound the file descriptors, CPU and memory that file operations use. See
// ADR 0055.
type permits struct {
	files    *limiter // all file operations
	walks    *limiter // searches and copies
	archives *limiter // compressions and extractions: each uses tens of MB of memory
	lists    *limiter // lists while they are read, not while they are sent
	spools   *limiter // large lists while they are sent
}

// fileHandles is how many file descriptors a file operation may hold, walks and
// archives excepted.
const fileHandles = 10

func newPermits() permits {
	total := max(16, edge.HandleShare()/fileHandles)
	return permits{
		files:    newLimiter(limits{total: total, perVolume: max(8, total/4), perToken: max(8, total/2), waiting: 64}),
		walks:    newLimiter(limits{total: 8, perVolume: 2, perToken: 4, waiting: 16}),
		archives: newLimiter(limits{total: 8, perVolume: 2, perToken: 4, waiting: 16}),
		lists:    newLimiter(limits{total: 4, perVolume: 2, perToken: 2, waiting: 64}),
		spools:   newLimiter(limits{total: 64, perVolume: 4, perToken: 8}),
	}
}
