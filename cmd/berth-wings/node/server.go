package node

import (
	"encoding/json"
	"errors"
	"sync"
	"time"

	"berth/api/client"
	"berth/api/egg"
	v1 "berth/api/v1"
)

// state is a state of a server in the panel's words.
type state string

// The states.
const (
	offline  state = "offline"
	starting state = "starting"
	running  state = "running"
	stopping state = "stopping"
)

// stateOf returns the state for a phase of berth's. Installations are no state for the panel.
func stateOf(phase v1.Phase) state {
	switch phase {
	case v1.Starting:
		return starting
	case v1.Running:
		return running
	case v1.Stopping:
		return stopping
	}
	return offline
}

// usage are the resources of a server, as panels read them. Uptime is in milliseconds.
type usage struct {
	Memory      int64   `json:"memory_bytes"`
	MemoryLimit int64   `json:"memory_limit_bytes"`
	CPU         float64 `json:"cpu_absolute"` // percent of one core
	Network     struct {
		Rx int64 `json:"rx_bytes"`
		Tx int64 `json:"tx_bytes"`
	} `json:"network"`
	DiskIO struct {
		Read  int64 `json:"read_bytes"`
		Write int64 `json:"write_bytes"`
	} `json:"disk_io"`
	Uptime int64 `json:"uptime"`
	State  state `json:"state"`
	Disk   int64 `json:"disk_bytes"`
}

// server is one server of the panel.
type server struct {
	uuid string

	power chan struct{} // has one element while no power action is in flight

	asking  sync.Mutex // held while the panel is asked for object: a late answer replaces no newer one
	making  sync.Mutex // held while its volume is created
	marking sync.Mutex // held while a label is changed
	removed bool       // its last task is the removal; under marking

	mu         sync.Mutex
	object     egg.Server
	volume     string // of berth; empty: it has none yet
	phase      v1.Phase
	usage      usage
	installing bool           // from the request to the report
	change     chan struct{}  // closed at the next change of the phase
	own        *client.Client // of berth, limited to this server; nil: none yet
	ownUntil   time.Time
	unreported []change        // of the state, the oldest first
	reporting  bool            // they are sent to the panel
	jobs       map[string]bool // the backups that are in flight, by UUID
	logins     []*login        // of SFTP
	cancel     func()          // ends the transfer; nil: there is none. It stays while another node may have the server

	feed feed
}

// change is one of a server's state.
type change struct{ before, now state }

// maxUnreported bounds the changes that wait for a panel that does not answer.
const maxUnreported = 100

// enqueue adds a change for the panel. It returns whether nobody sends them yet. If there are too many, the
// oldest is left out.
func (s *server) enqueue(c change) (begin bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreported = append(s.unreported, c); len(s.unreported) > maxUnreported {
		s.unreported = s.unreported[1:]
	}
	begin, s.reporting = !s.reporting, true
	return begin
}

// dequeue takes the oldest change for the panel.
func (s *server) dequeue() (c change, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unreported) == 0 {
		s.reporting = false
		return c, false
	}
	c, s.unreported = s.unreported[0], s.unreported[1:]
	return c, true
}

func newServer(object egg.Server) *server {
	s := &server{uuid: object.UUID, object: object, power: make(chan struct{}, 1), jobs: map[string]bool{}, change: make(chan struct{})}
	s.usage.State = offline
	s.power <- struct{}{}
	return s
}

// observe takes a phase, and returns the states before and after it.
func (s *server) observe(phase v1.Phase) (before, now state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, now = s.usage.State, stateOf(phase)
	s.phase, s.usage.State = phase, now
	if now == offline {
		s.usage = usage{State: now, MemoryLimit: s.usage.MemoryLimit, Disk: s.usage.Disk}
	}
	close(s.change)
	s.change = make(chan struct{})
	return before, now
}

// measure takes statistics of berth's.
func (s *server) measure(m v1.Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.usage.State == offline {
		return // of a run that has ended
	}
	u := usage{Memory: m.MemoryUsage, MemoryLimit: m.MemoryLimit, CPU: m.CPUUsage,
		Uptime: m.Uptime * 1000, State: s.usage.State, Disk: s.usage.Disk}
	u.Network.Rx, u.Network.Tx = m.NetworkRx, m.NetworkTx
	u.DiskIO.Read, u.DiskIO.Write = m.BlockRead, m.BlockWrite
	if m.DiskUsage != nil {
		u.Disk = *m.DiskUsage
	}
	s.usage = u
}

// seen returns the phase that berth's events reported last, and a channel that is closed at the next change.
func (s *server) seen() (v1.Phase, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase, s.change
}

func (s *server) setDisk(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage.Disk = bytes
}

// get returns what the panel sent about a server last.
func (s *server) get() egg.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object
}

func (s *server) set(object egg.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.object = object
}

func (s *server) pelican() bool   { return s.get().Pelican }
func (s *server) suspended() bool { return s.get().Suspended }

func (s *server) current() usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

var errInstalling = errors.New("server is currently in the process of being installed")

// beginInstall reserves the installation of a server.
func (s *server) beginInstall() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.installing {
		return errInstalling
	}
	s.installing = true
	return nil
}

func (s *server) endInstall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.installing = false
}

func (s *server) isInstalling() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.installing || s.phase == v1.Installing
}

// beginJob reports whether a backup is not in flight yet, which it is from now on.
func (s *server) beginJob(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	begins := !s.jobs[id]
	s.jobs[id] = true
	return begins
}

func (s *server) endJob(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, id)
}

// view is a server as the panel reads it.
type view struct {
	State         state           `json:"state"`
	Suspended     bool            `json:"is_suspended"`
	Utilization   usage           `json:"utilization"`
	Configuration json.RawMessage `json:"configuration"`
}

func (s *server) view() view {
	s.mu.Lock()
	defer s.mu.Unlock()
	return view{s.usage.State, s.object.Suspended, s.usage, s.object.Settings}
}
