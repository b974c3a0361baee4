package server

import (
	"container/list"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// The most connections at once.
const (
	maxConns          = 8192 // all; fewer where the process may have few handles
	maxConnsPerIP     = 512  // of one address, before a request on them had a valid token
	handlesPerConn    = 3    // one for the connection, one for a file, one for everything else
	maxAnonymousShare = 4    // connections without a valid token may be a fourth of all
	maxMintedShare    = 2    // those of minted tokens half of all; what is left is the panel's
)

// handleShare is how many connections the process may have: a third of its
// handles. Another third is for the files that requests open, and the last for
// the store, the engine and the consoles. The limit may change at any time.
func handleShare() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return maxConns
	}
	return int(min(maxConns, limit.Cur/handlesPerConn))
}

// class is how far a connection is trusted.
type class int

const (
	anonymous class = iota // no request on it has had a valid token yet
	minted                 // the last valid token was a minted one
	panel                  // the last valid token was the configured one
	classes
)

// owner is who a connection counts for: an address, or a token.
type owner struct {
	class class
	name  string // address or id of the token
}

// connections are all that are open. When there are too many of a class, the
// oldest one of the owner with most of them is closed, and the new one is
// served: so nobody who opens many shuts anybody else out, also from the same
// address.
type connections struct {
	total  func() int           // at once
	perIP  int                  // at once of one address, without a valid token
	shared func(ip string) bool // reports whether an address is one of many clients: a trusted proxy

	mu    sync.Mutex
	count [classes]int
	open  map[owner]*list.List // of *conn, the oldest first
}

func newConnections(perIP int, shared func(ip string) bool) *connections {
	if perIP <= 0 {
		perIP = maxConnsPerIP
	}
	return &connections{total: handleShare, perIP: perIP, shared: shared, open: map[owner]*list.List{}}
}

// add takes a new connection in, and closes those that are too many. It returns
// false if the new one is.
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

// prove counts a connection for the token of a request on it.
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

// remove takes a connection out that is closed.
func (s *connections) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delete(c)
}

// trim closes what is too many since the limit has changed.
func (s *connections) trim() {
	s.mu.Lock()
	victims := s.tooMany()
	s.mu.Unlock()
	abort(victims)
}

// unused are the connections on which nothing has come yet.
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

// tooMany takes out what is over a limit.
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

// oldest takes out the oldest connection of an owner who has one.
func (s *connections) oldest(of owner) *conn {
	c := s.open[of].Front().Value.(*conn)
	s.delete(c)
	return c
}

// largest is the owner with most connections of a class of which there are some.
func (s *connections) largest(k class) (most owner) {
	n := 0
	for of, l := range s.open {
		if of.class == k && l.Len() > n {
			most, n = of, l.Len()
		}
	}
	return most
}

// abort closes connections that were taken out, without waiting for anything.
func abort(victims []*conn) {
	for _, c := range victims {
		_ = plain(c.Conn).Close()
	}
}

// plain is the connection below TLS: that of TLS says goodbye, and waits.
func plain(c net.Conn) net.Conn {
	if over, is := c.(interface{ NetConn() net.Conn }); is {
		return over.NetConn()
	}
	return c
}

// host is the address of a connection's other side, without the port.
func host(a net.Addr) string {
	name, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return name
}

// network is what addresses are counted by: IPv4 addresses one by one, of IPv6
// the 64 bits that one customer of a provider has.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	prefix, _ := ip.WithZone("").Prefix(64) // 64 bits are in every IPv6 address
	return prefix.String()
}
