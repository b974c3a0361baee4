package limit

import (
	"time"

	"golang.org/x/sys/unix"
)

// MiB is the unit in which memory is counted.
const MiB = 1 << 20

// Addresses is how many addresses or tenants a Rate counts separately.
const addresses = 1024

// WrongTokens bounds the wrong tokens of an address, of HTTP and of SFTP together. An address
// is counted by Network.
func WrongTokens() Pace { return Pace{Every: 3 * time.Second, Burst: 20, Keys: addresses} }

// WrongLogin is what a wrong login of SFTP counts as, among wrong tokens.
const WrongLogin = 2

// Changes bounds the requests of a tenant that may change something. Each is an entry of the
// audit log, which has a maximum: a tenant must not be able to replace the log's content.
func Changes() Pace { return Pace{Every: 10 * time.Millisecond, Burst: 2000, Keys: addresses} }

// RefusedChange is what a refused change counts as.
const RefusedChange = 5

// FileChanges is Changes for SFTP: a tree that is uploaded has more files than a panel sends
// requests.
func FileChanges() Pace { return Pace{Every: 10 * time.Millisecond, Burst: 20_000, Keys: addresses} }

// Starts bounds the requests that start a container with tokens that are limited to
// containers. The work is the engine's, so no limit of the container bounds it. A PUT and a reinstall
// have no such limit: they need the scope admin, with which the container can be removed as well.
func Starts() Pace { return Pace{Every: 30 * time.Second, Burst: 20, Keys: 4096} }

// Jobs bounds the requests of a tenant that begin or remove backups and downloads, with tokens
// that are limited to containers. Each has several transitions, and the log of those has a
// maximum: a tenant must not be able to replace what others read.
func Jobs() Pace { return Pace{Every: time.Minute, Burst: 20, Keys: 4096} }

// ClusterEvents bounds the events that a container, which may crash again and again, has in its cluster.
func ClusterEvents() Pace { return Pace{Every: time.Minute, Burst: 25, Keys: 8192} }

// PanelKeys bounds the stored responses to requests with an idempotency key and the configured token.
// Each is kept for v1.OutcomeRetention, a day: in one, twice as many are stored at most.
func PanelKeys() Pace { return Pace{Every: day / 100_000, Burst: 100_000, Keys: 1} }

// Keys is PanelKeys for a minted token and those minted with it.
func Keys() Pace { return Pace{Every: day / 1000, Burst: 1000, Keys: addresses} }

const day = 24 * time.Hour

// RefusedEntries bounds the entries of the audit log about refused requests of a tenant, by action:
// others are counted in the next. They cost a tenant nothing, and the log has a maximum.
func RefusedEntries() Pace { return Pace{Every: time.Minute, Burst: 100, Keys: 8192} }

// RequestLines bounds the lines of the log about requests of the administrator, and of one tenant.
func RequestLines() Pace { return Pace{Every: 20 * time.Millisecond, Burst: 500, Keys: addresses} }

// FailureLines bounds the lines of the log about wrong tokens of an address.
func FailureLines() Pace { return Pace{Every: time.Second, Burst: 1, Keys: addresses} }

// Sessions bounds sockets and transfers. The objects are the containers that sockets listen to.
func Sessions() Bounds { return Bounds{All: 2048, Tenant: 64, Object: 256, Kept: 64} }

// Tickets bounds those that are valid. Beyond it the oldest of the tenant ends.
func Tickets() Bounds { return Bounds{All: 8192, Tenant: 256} }

// Connections bounds those on which a valid token was presented.
func Connections() Bounds {
	return Bounds{All: max(1, connections()-connections()/unproved), Tenant: maxConnections}
}

// Anonymous bounds the other connections, by address.
func Anonymous() Bounds {
	return Bounds{All: max(1, connections()/unproved), Tenant: maxConnections, Anonymous: true}
}

const (
	allConnections = 8192
	maxConnections = 512 // of one tenant or address
	unproved       = 4   // the part of connections without a valid token
	handleShares   = 3   // of the file handles: for connections, for files of requests, and for the rest of berth
)

// connections returns how many connections the process may have. RLIMIT_NOFILE may change at
// run time, so it is read each time.
func connections() int { return min(allConnections, handles()/handleShares) }

func handles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return allConnections * handleShares
	}
	return int(min(limit.Cur, allConnections*handleShares))
}

// Bodies bounds the memory of JSON bodies above 8 KiB, in MiB. largest is the largest body
// that is allowed. The object is LargeBody: a fourth of the memory is left to other bodies.
func Bodies(largest int64) Bounds {
	all := max(bodies, 4*int(InMiB(largest)))
	return Bounds{All: all, Tenant: all / 4, Object: all - all/4, Kept: int(InMiB(largest)), Wait: maxConnections}
}

// LargeBody is the object of bodies above 1 MiB.
const LargeBody = "large body"

// BodyTime is how long a client may take to send a body whose memory is reserved: a slow one
// keeps it from others.
func BodyTime(bytes int64) time.Duration {
	return 5*time.Second + time.Duration(InMiB(bytes))*2*time.Second
}

// Answers bounds the memory of answers above 256 KiB, also of console history on sockets, until they are sent, in
// MiB. One answer counts as the share of a tenant at most, so that each can be sent.
func Answers() Bounds { return Bounds{All: 256, Tenant: 64} }

const bodies = 32

// InMiB returns bytes in MiB, rounded up.
func InMiB(bytes int64) int64 { return (bytes + MiB - 1) / MiB }

// BodyWait is how long a body waits for memory.
const BodyWait = 5 * time.Second

// FileOperations bounds all operations on files; each has a few handles. The objects
// of this and the next ones are volumes.
func FileOperations() Bounds {
	const handlesOfOne = 10
	all := max(16, connections()/handlesOfOne)
	return Bounds{All: all, Tenant: max(8, all/2), Object: max(8, all/4), Wait: 64}
}

// Walks bounds searches and copies.
func Walks() Bounds { return Bounds{All: 8, Tenant: 4, Object: 2, Wait: 16} }

// Archives bounds those that are created or extracted: each takes tens of MiB of memory.
func Archives() Bounds { return Bounds{All: 8, Tenant: 4, Object: 2, Wait: 16} }

// ArchiveStreams bounds the archives that are sent or received. They are not counted among Archives: a slow client
// would keep a permit of those for hours.
func ArchiveStreams() Bounds { return Bounds{All: 16, Tenant: 4, Object: 2, Wait: 16} }

// Lists bounds lists of files while they are read. Answers bounds those that are sent.
func Lists() Bounds { return Bounds{All: 4, Tenant: 2, Object: 2, Wait: 64} }

// Histories bounds those of consoles while they are read and encoded. Answers bounds those that are sent. The objects
// are containers.
func Histories() Bounds { return Bounds{All: 4, Tenant: 2, Object: 2, Wait: maxConnections} }

// Commands bounds the commands that a container has not read. The tenants are containers.
func Commands() Bounds { return Bounds{All: 512, Tenant: 8, Wait: 64} }

// Reads bounds the requests of a tenant that read, while their answers are made: each may take
// milliseconds of a core, and there may be one on each of its connections.
func Reads() Bounds { return Bounds{All: 512, Tenant: 8, Wait: maxConnections} }

// Scans bounds the requests for events that read more of them than they return: each takes up
// to a second of a core. The object is the caller.
func Scans() Bounds { return Bounds{All: 3, Tenant: 1, Object: 2, Wait: 8} }

// SFTPAnonymous bounds the connections of SFTP that have not logged in, by address. While fewer addresses
// than All connect, each has a connection.
func SFTPAnonymous() Bounds { return Bounds{All: 512, Tenant: 32, Anonymous: true} }

// SFTPFailures bounds the connections of SFTP from an address that end without a login: each takes
// a key exchange.
func SFTPFailures() Pace { return Pace{Every: time.Second, Burst: 20, Keys: 4096} }

// Resizes bounds how often the terminal of a container changes its size: the engine does it.
func Resizes() Pace { return Pace{Every: 50 * time.Millisecond, Burst: 50, Keys: 4096} }

// SFTPSessions bounds the sessions of SFTP, by volume.
func SFTPSessions(all, tenant int) Bounds { return Bounds{All: all, Tenant: tenant} }

// SFTPFiles bounds the open files and folders of SFTP. The objects are sessions.
func SFTPFiles() Bounds {
	all := min(1024, handles()/8)
	return Bounds{All: all, Tenant: max(1, all/4), Object: 100}
}
