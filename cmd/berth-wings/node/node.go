package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"berth/api/client"
	"berth/api/egg"
	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/config"
	"berth/cmd/berth-wings/panel"
)

// Options configure a Node.
type Options struct {
	File    *config.File
	Environ []string       // for updates of the file
	Berth   *client.Client // with a token of the scope admin
	SFTP    string         // address of berth's SFTP
	Panel   *panel.Client
	Version string    // as the panel shows it: three numbers
	Began   time.Time // tokens that were issued until this second are refused
	Log     *slog.Logger
	Checks  <-chan time.Time // when the tokens of sockets are checked; nil: periodically
}

// Node is the node of one panel.
type Node struct {
	o    Options
	file atomic.Pointer[config.File]
	host atomic.Pointer[v1.Node] // berth's, as it was last read

	processor processor
	tokens    *tokens
	activity  *activity
	crashes   chan struct{} // has an element if berth's events may have crashes that are not reported
	browsers  *limit.Slots  // the requests of browsers, and sockets by the server of their token
	anonymous *limit.Slots  // sockets that have not shown a token
	queued    atomic.Int64  // bytes that sockets have not taken
	orders    *limit.Slots  // power actions of pages, by server and action
	uploads   *limit.Slots  // of backups to S3
	sftp      sftpServer

	mu      sync.Mutex
	servers map[string]*server
	sftpKey []byte // the host key of berth's SFTP; nil: not known yet

	jobs sync.WaitGroup     // of requests that were answered before their work was done
	ctx  context.Context    // of those
	end  context.CancelFunc // of ctx
}

// New returns a Node without servers, which has the activity that was left on disk. Run must be called.
func New(o Options) (*Node, error) {
	kept, err := openActivity(activityFile(o.File.Config))
	if err != nil {
		return nil, err
	}
	n := &Node{o: o, servers: map[string]*server{}, tokens: newTokens(o.Began), activity: kept, crashes: make(chan struct{}, 1),
		browsers: limit.NewSlots(browsers), anonymous: limit.NewSlots(anonymous),
		orders: limit.NewSlots(orders), uploads: limit.NewSlots(uploads), sftp: newSFTP()}
	n.file.Store(o.File)
	n.host.Store(new(v1.Node))
	n.ctx, n.end = context.WithCancel(context.Background())
	return n, nil
}

// browsers are the bounds of the requests and sockets of browsers, by address: many may be behind one. anonymous are those of
// sockets without a token: the newest push out the oldest of the address that has most.
func browsers() limit.Bounds {
	return limit.Bounds{All: 2048, Tenant: 256, Object: 2 * maxSockets, Anonymous: true}
}

// orders are the bounds of power actions of pages: each is recorded, and requests of the panel for the server wait for that.
func orders() limit.Bounds { return limit.Bounds{All: 1024, Tenant: 4, Anonymous: true} }

func anonymous() limit.Bounds { return limit.Bounds{All: 512, Tenant: 64, Anonymous: true} }

func (n *Node) config() config.Config { return n.file.Load().Config }

// The pauses of what goes on while berth or the panel does not answer, and of what is read again.
const (
	retryPause = 2 * time.Second
	watchEvery = 30 * time.Second
	callTime   = 20 * time.Second // of one call that others wait for
)

// Run reads the servers of the panel and of berth, calls ready, and then follows berth until ctx ends.
// While one of them does not answer, it waits: nothing of berth's is stopped.
func (n *Node) Run(ctx context.Context, ready func()) error {
	defer n.jobs.Wait()
	defer n.end()
	for {
		err := n.load(ctx)
		if err == nil {
			err = n.reportCrashes(ctx)
		}
		if err == nil {
			err = n.resume(ctx)
		}
		if err == nil {
			break
		}
		n.o.Log.Warn("cannot begin yet", "err", err)
		if !pause(ctx, retryPause) {
			return nil
		}
	}
	n.background(n.watchBerth)
	n.background(n.watchCrashes)
	n.background(n.sendActivity)
	n.background(n.watchTokens)
	ready()
	n.follow(ctx)
	return nil
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// background runs a job until the node ends, which waits for it.
func (n *Node) background(job func(ctx context.Context)) {
	n.jobs.Go(func() { job(n.ctx) })
}

// load reads all servers.
func (n *Node) load(ctx context.Context) error {
	if err := n.readHost(ctx); err != nil {
		return fmt.Errorf("berth: %w", err)
	}
	list, refused, err := n.o.Panel.Servers(ctx)
	if err != nil {
		return fmt.Errorf("the panel: %w", err)
	}
	for _, err := range refused {
		n.o.Log.Error("a server is left out", "err", err)
	}
	containers, err := n.o.Berth.Containers().List(ctx, egg.ServerLabel)
	if err != nil {
		return fmt.Errorf("berth: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.servers = map[string]*server{}
	for _, object := range list {
		n.servers[object.UUID] = newServer(object)
	}
	for _, c := range containers {
		if s := n.servers[c.InternalID]; s != nil {
			s.volume = c.VolumeID
			s.observe(c.State)
		}
	}
	return nil
}

// find returns a server, or nil.
func (n *Node) find(uuid string) *server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.servers[uuid]
}

// all returns the servers by their UUID.
func (n *Node) all() (list []*server) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, uuid := range slices.Sorted(maps.Keys(n.servers)) {
		list = append(list, n.servers[uuid])
	}
	return list
}

// readHost reads berth's node.
func (n *Node) readHost(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	host, err := n.o.Berth.Node(ctx)
	if err == nil {
		n.host.Store(&host)
	}
	return err
}

// watchBerth reads berth's node and the sizes of all volumes periodically: those of servers that do not run are not in their
// statistics.
func (n *Node) watchBerth(ctx context.Context) {
	for {
		volumes, err := n.o.Berth.Volumes().List(ctx, egg.ServerLabel)
		for _, v := range volumes {
			if s := n.find(v.Labels[egg.ServerLabel]); s != nil {
				s.setDisk(v.Size)
			}
		}
		if err = errors.Join(err, n.readHost(ctx)); err != nil && ctx.Err() == nil {
			n.o.Log.Warn("berth does not answer", "err", err)
		}
		if !pause(ctx, watchEvery) {
			return
		}
	}
}

// follow takes berth's events and statistics until ctx ends. What it missed while the connection was
// lost is in the state with which each stream begins.
func (n *Node) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := n.once(ctx)
		if ctx.Err() == nil {
			n.o.Log.Warn("berth's events end", "err", err)
			pause(ctx, retryPause)
		}
	}
}

func (n *Node) once(ctx context.Context) error {
	newest, err := n.o.Berth.Events().Newest(ctx)
	if err != nil {
		return err
	}
	stream, err := n.o.Berth.Events().Open(ctx, newest)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	n.wakeCrashes() // of those between the streams
	for {
		m, err := stream.Next()
		if err != nil {
			return err
		}
		if s := n.find(m.Container); s != nil {
			n.take(s, m)
		}
	}
}

// take takes one message about a server.
func (n *Node) take(s *server, m client.Message) {
	switch m.Event {
	case v1.EventState:
		n.changed(s, v1.Phase(m.Data))
		if isCrash(m.Transition) {
			n.wakeCrashes()
		}
	case client.EventStats:
		if stats, err := m.Stats(); err == nil {
			s.measure(stats)
		}
	}
}

// changed follows a change of a container's state, and has it reported to the panel, one after the other.
func (n *Node) changed(s *server, phase v1.Phase) {
	before, now := s.observe(phase)
	if before != now && s.pelican() && s.enqueue(change{before, now}) {
		n.background(func(ctx context.Context) { n.reportStates(ctx, s) })
	}
}

// reportStates reports the changes of a server's state until there are no more.
func (n *Node) reportStates(ctx context.Context, s *server) {
	for {
		c, more := s.dequeue()
		if !more {
			return
		}
		if err := n.o.Panel.ReportState(ctx, s.uuid, string(c.before), string(c.now)); err != nil && ctx.Err() == nil {
			n.o.Log.Warn("the panel does not take a state", "server", s.uuid, "err", err)
		}
	}
}
