package sftp

import (
	"net"
	"slices"
	"sync"
)

// Limits on connections that have not logged in.
const (
	maxPending        = 128
	maxPendingAddress = 32 // of one address
)

// unauthenticated are the connections that have not logged in, oldest first. If there are too
// many, the oldest of the address that has most of them is closed: a client that logs
// in at once is admitted while others only keep connections open.
type unauthenticated struct {
	mu   sync.Mutex
	list []waiting
}

type waiting struct {
	conn    net.Conn
	network string
}

// add adds a connection, and closes another one if there are too many.
func (p *unauthenticated) add(conn net.Conn, network string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, waiting{conn, network})
	count := map[string]int{}
	most := network
	for _, w := range p.list {
		if count[w.network]++; count[w.network] > count[most] {
			most = w.network
		}
	}
	if count[network] > maxPendingAddress {
		most = network
	} else if len(p.list) <= maxPending {
		return
	}
	i := slices.IndexFunc(p.list, func(w waiting) bool { return w.network == most })
	p.list[i].conn.Close()
	p.list = slices.Delete(p.list, i, i+1)
}

// remove removes a connection that has logged in or ended.
func (p *unauthenticated) remove(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = slices.DeleteFunc(p.list, func(w waiting) bool { return w.conn == conn })
}
