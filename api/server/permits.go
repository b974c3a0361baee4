package server

// permits bound what file operations take of what all volumes share: handles,
// processor, memory. See ADR 0055.
type permits struct {
	files    *limiter // everything on the files of a volume
	walks    *limiter // searches and copies
	archives *limiter // made or extracted: each takes tens of MB of memory
	lists    *limiter // withClient they are read; they are not held while a client takes one
	spools   *limiter // large lists that clients are taking
}

// operationsRetry is when a request that got 429 may be sent again, in seconds.
const operationsRetry = "5"

// fileHandles is how many handles a file operation may hold that is neither a walk
// nor an archive.
const fileHandles = 10

func newPermits() permits {
	total := max(16, handleShare()/fileHandles)
	return permits{
		files:    newLimiter(limits{total: total, perVolume: max(8, total/4), perToken: max(8, total/2), waiting: 64}),
		walks:    newLimiter(limits{total: 8, perVolume: 2, perToken: 4, waiting: 16}),
		archives: newLimiter(limits{total: 8, perVolume: 2, perToken: 4, waiting: 16}),
		lists:    newLimiter(limits{total: 4, perVolume: 2, perToken: 2, waiting: 64}),
		spools:   newLimiter(limits{total: 64, perVolume: 4, perToken: 8}),
	}
}
