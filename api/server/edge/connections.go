package edge

import (
	"container/list"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// Limits on open connections.
const (
	maxConns          = 8192 // in total; fewer if RLIMIT_NOFILE is low
	maxConnsPerIP     = 512  // from one address, until a request on them had a valid token
	handlesPerConn    = 3    // file descriptors: one for the connection, one for a file, one for the rest of berth
	maxAnonymousShare = 4    // connections without a valid token may take 1/4 of the total
	maxMintedShare    = 2    // connections of minted tokens may take 1/2; the rest is for the configured token
)

// HandleShare returns how many connections the process may have: a third of
// RLIMIT_NOFILE, and at most 8192. Another third is for files that requests open, and the last for
// the store, the engine and the consoles. The limit may change at run time, so it
// is read each time.
func HandleShare() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return maxConns
	}
	return int(min(maxConns, limit.Cur/handlesPerConn))
}

// class is the trust level of a connection.
type class int

const (
	anonymous class = iota // no request had a valid token yet
	minted                 // the last valid token was a minted one
	panel                  // the last valid token was the configured one
	classes
)

// owner is the party that a connection is counted for: an address or a token.
type owner struct {
	class class
	name  string // address, or id of the token
}

// connections is the registry of open connections. When a class is full, the
// registry closes the oldest connection of the owner that has most of them, and
// serves the new one. So a client that opens many connections cannot shut out
// others, not even others from its own address.
type connections struct {
	total  func() int           // limit on all connections
	perIP  int                  // limit per address without a valid token
	shared func(ip string) bool // reports whether many clients share an address: a trusted proxy

	mu    sync.Mutex
	count [classes]int
	open  map[owner]*list.List // of *conn, oldest first
}

func newConnections(perIP int, shared func(ip string) bool) *connections {
	if perIP <= 0 {
		perIP = maxConnsPerIP
	}
	return &connections{total: HandleShare, perIP: perIP, shared: shared, open: map[owner]*list.List{}}
}

// add registers a connection and closes those above a limit. It returns false if
// the new connection is one of them.
func (s *connections) add(c *conn) bool {
	ip := host(c.RemoteAddr())
	s.mu.Lock()
	s.insert(c, owner{anonymous, network(ip)})
	var victims []*conn
	if !s.shared(ip) && s.open[c.owner].Len() > s.perIP {
		victims = append(victims, s.oldest(c.owner))
	}
	victims = append(victims, s.tooMany()...)
	served := c.place != nil
	s.mu.Unlock()
	abort(victims)
	return served
}

// prove counts a connection for the token that a request on it presented; the
// configured token has the empty id.
func (s *connections) prove(c *conn, tokenID string) {
	to := owner{minted, tokenID}
	if tokenID == "" {
		to.class = panel
	}
	s.mu.Lock()
	if c.place == nil || c.owner == to {
		s.mu.Unlock()
		return
	}
	s.delete(c)
	s.insert(c, to)
	victims := s.tooMany()
	s.mu.Unlock()
	abort(victims)
}

// remove removes a closed connection.
func (s *connections) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delete(c)
}

// trim closes connections above the limits, which may have changed.
func (s *connections) trim() {
	s.mu.Lock()
	victims := s.tooMany()
	s.mu.Unlock()
	abort(victims)
}

// unused returns the connections on which no byte was received yet.
func (s *connections) unused() (unused []*conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.open {
		for e := of.Front(); e != nil; e = e.Next() {
			if c := e.Value.(*conn); !c.used.Load() {
				unused = append(unused, c)
			}
		}
	}
	return unused
}

func (s *connections) insert(c *conn, to owner) {
	of := s.open[to]
	if of == nil {
		of = list.New()
		s.open[to] = of
	}
	c.owner, c.place = to, of.PushBack(c)
	s.count[to.class]++
}

func (s *connections) delete(c *conn) {
	if c.place == nil {
		return
	}
	of := s.open[c.owner]
	of.Remove(c.place)
	if of.Len() == 0 {
		delete(s.open, c.owner)
	}
	c.place = nil
	s.count[c.owner.class]--
}

// tooMany removes and returns the connections above a limit.
func (s *connections) tooMany() (victims []*conn) {
	total := max(s.total(), 1)
	over := func(k class, most int) {
		for s.count[k] > most {
			victims = append(victims, s.oldest(s.largest(k)))
		}
	}
	over(anonymous, max(total/maxAnonymousShare, 1))
	over(minted, max(total/maxMintedShare, 1))
	for _, k := range []class{anonymous, minted, panel} {
		others := s.count[anonymous] + s.count[minted] + s.count[panel] - s.count[k]
		over(k, max(total-others, 0))
	}
	return victims
}

// oldest removes and returns the oldest connection of an owner, which must have one.
func (s *connections) oldest(of owner) *conn {
	c := s.open[of].Front().Value.(*conn)
	s.delete(c)
	return c
}

// largest returns the owner with most connections of a class.
func (s *connections) largest(k class) (most owner) {
	n := 0
	for of, l := range s.open {
		if of.class == k && l.Len() > n {
			most, n = of, l.Len()
		}
	}
	return most
}

// abort closes connections that were removed. It does not wait for their clients.
func abort(victims []*conn) {
	for _, c := range victims {
		_ = plain(c.Conn).Close()
	}
}

// plain returns the connection below TLS, whose Close does not wait for a TLS alert
// to be sent.
func plain(c net.Conn) net.Conn {
	if over, is := c.(interface{ NetConn() net.Conn }); is {
		return over.NetConn()
	}
	return c
}

// host returns an address without its port.
func host(a net.Addr) string {
	name, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return name
}

// network returns the network that an address is counted by: an IPv4 address
// itself, or the /64 of an IPv6 address, which providers assign to one customer.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	prefix, _ := ip.WithZone("").Prefix(64) // 64 bits are in every IPv6 address
	return prefix.String()
}
