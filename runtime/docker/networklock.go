package docker

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// networkLockFile is locked by the daemon that creates a network.
const networkLockFile = "/run/berth-network.lock"

// networkLockPoll is how often a daemon tries to lock the network, and
// networkLockWait how long: then it goes on without the lock.
const (
	networkLockPoll = 50 * time.Millisecond
	networkLockWait = 10 * time.Second
)

// lockNetwork locks the creation of networks among the daemons of the host: the
// engine creates two networks of one name for two concurrent requests, and then
// refuses the name as ambiguous. Without permission to create
// the lock's file, or if another process keeps it locked, there is no lock.
func lockNetwork(ctx context.Context) (unlock func()) {
	f, err := os.OpenFile(networkLockFile, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return func() {}
	}
	unlock = func() { _ = f.Close() }
	ctx, cancel := context.WithTimeout(ctx, networkLockWait)
	defer cancel()
	for unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		select {
		case <-time.After(networkLockPoll):
		case <-ctx.Done():
			return unlock
		}
	}
	return unlock
}
