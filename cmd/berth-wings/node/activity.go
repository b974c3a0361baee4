package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"berth/api/client"
	"berth/cmd/berth-wings/config"
	"berth/cmd/berth-wings/panel"
)

// The bounds of what the panel has not taken yet. Beyond them the oldest entries are lost, of the server that has most.
const (
	maxKept    = 8 << 20 // bytes of the file
	maxSent    = 1 << 20 // bytes of one request: a panel refuses a large one, with the entries of others in it
	maxAdded   = 1 << 10 // bytes of an entry that is added to another one
	maxCommand = 1024    // bytes of a command in an entry
	maxFiles   = 100     // of an entry
	maxBack    = 16      // entries that another one may be added to
)

// activity keeps what customers did until the panel has taken it, on disk: each entry is a line of a
// file, so that the end of the bridge loses none.
type activity struct {
	path string

	mu   sync.Mutex
	read client.Cursor // of berth's events: the crashes up to it are entries
	list []panel.Activity
	size int // bytes of the file
	sent int // entries of list that are on their way to the panel, or were
}

// activityLine is a line of the file: an entry, and how far berth's events are read with it.
type activityLine struct {
	*panel.Activity                // nil: no entry
	Read            *client.Cursor `json:"read,omitempty"` // nil: as before
}

// openActivity reads the entries that a bridge before this one has left.
func openActivity(path string) (*activity, error) {
	a := &activity{path: path}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var l activityLine
		if json.Unmarshal(line, &l) == nil { // the last line may be cut off
			a.take(l)
		}
	}
	return a, a.rewrite()
}

// take takes what a line has.
func (a *activity) take(l activityLine) {
	if l.Read != nil {
		a.read = *l.Read
	}
	if l.Activity != nil {
		a.gather(*l.Activity)
	}
}

// gather adds an entry to the list, or its files to an earlier entry: the changes of files by one user in a
// minute are one entry.
func (a *activity) gather(e panel.Activity) {
	files, _ := e.Metadata["files"].([]any)
	for i := len(a.list) - 1; files != nil && i >= max(a.sent, len(a.list)-maxBack); i-- {
		old := a.list[i]
		all, _ := old.Metadata["files"].([]any)
		if old.User != nil && e.User != nil && *old.User == *e.User && old.Server == e.Server && old.Event == e.Event && old.IP == e.IP &&
			old.Timestamp.Truncate(time.Minute).Equal(e.Timestamp.Truncate(time.Minute)) && all != nil && len(all)+len(files) <= maxFiles &&
			sizeOf(e) <= maxAdded {
			old.Metadata["files"] = append(all, files...)
			return
		}
	}
	a.list = append(a.list, e)
}

// lastRead returns how far berth's events are read.
func (a *activity) lastRead() client.Cursor {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.read
}

// setRead records how far berth's events are read.
func (a *activity) setRead(at client.Cursor) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.read == at {
		return nil
	}
	a.read = at
	return a.rewrite()
}

// add appends an entry, and how far berth's events are read with it, or nil.
func (a *activity) add(e panel.Activity, read *client.Cursor) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := activityLine{&e, read}
	a.take(l)
	line, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if a.size += len(line) + 1; a.size > maxKept {
		a.trim()
		return a.rewrite()
	}
	f, err := os.OpenFile(a.path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// trim removes the older half of the entries of the server that has most: no customer removes those of others. Entries on their
// way to the panel stay.
func (a *activity) trim() {
	waiting, sizes, most := a.list[a.sent:], map[string]int{}, ""
	for _, e := range waiting {
		if sizes[e.Server] += sizeOf(e); sizes[e.Server] > sizes[most] {
			most = e.Server
		}
	}
	left := (sizes[most] + 1) / 2
	kept := slices.DeleteFunc(slices.Clone(waiting), func(e panel.Activity) bool {
		removes := e.Server == most && left > 0
		if removes {
			left -= sizeOf(e)
		}
		return removes
	})
	a.list = append(a.list[:a.sent:a.sent], kept...)
}

// sizeOf returns how many bytes of the file an entry has.
func sizeOf(e panel.Activity) int {
	text, _ := json.Marshal(e) // of this package: it cannot fail
	return len(text) + 1
}

// first returns the oldest entries for one request, at most count.
func (a *activity) first(count int) []panel.Activity {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = 0
	for size := 0; a.sent < min(count, len(a.list)) && (size == 0 || size+sizeOf(a.list[a.sent]) <= maxSent); a.sent++ {
		size += sizeOf(a.list[a.sent])
	}
	return append([]panel.Activity{}, a.list[:a.sent]...)
}

// drop removes the oldest entries: the panel has them.
func (a *activity) drop(count int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list, a.sent = a.list[min(count, len(a.list)):], 0
	return a.rewrite()
}

// rewrite writes the file anew.
func (a *activity) rewrite() error {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	err := to.Encode(activityLine{Read: &a.read})
	for _, e := range a.list {
		err = errors.Join(err, to.Encode(e))
	}
	if err != nil {
		return err
	}
	a.size = b.Len()
	return config.Replace(a.path, b.Bytes())
}

// activityFile is where a node keeps its activity.
func activityFile(c config.Config) string {
	return filepath.Join(c.System.RootDirectory, "berth-wings", "activity.jsonl")
}

// record records what a customer did, or nobody if user is empty.
func (n *Node) record(from netip.Addr, user string, s *server, e panel.Activity) {
	e.Server, e.IP, e.Timestamp = s.uuid, from, time.Now().UTC()
	if user != "" {
		e.User = &user
	}
	n.keep(e, nil)
}

func (n *Node) keep(e panel.Activity, read *client.Cursor) {
	if err := n.activity.add(e, read); err != nil {
		n.o.Log.Error("activity is not kept", "err", err)
	}
}

// sendActivity sends the activity periodically, until ctx ends.
func (n *Node) sendActivity(ctx context.Context) {
	for pause(ctx, time.Duration(n.config().System.ActivitySendInterval)*time.Second) {
		n.flushActivity(ctx)
	}
}

// flushActivity sends all activity that the panel takes now.
func (n *Node) flushActivity(ctx context.Context) {
	for {
		list := n.activity.first(n.config().System.ActivitySendCount)
		if len(list) == 0 {
			return
		}
		err := n.o.Panel.ReportActivity(ctx, list)
		if err != nil && !panel.IsInvalid(err) {
			return // it is sent again
		}
		if err != nil {
			n.o.Log.Error("the panel refuses activity", "entries", len(list), "err", err)
		}
		if err := n.activity.drop(len(list)); err != nil {
			n.o.Log.Error("activity is not kept", "err", err)
			return
		}
	}
}
