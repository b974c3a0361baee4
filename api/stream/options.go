package stream

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Errors of Listener.Next and Hub.Listen.
var (
	ErrSlow   = errors.New("listener is too slow for its state events") // the client can resume by sequence number
	ErrGone   = errors.New("container is deleted")
	ErrClosed = errors.New("hub is closed")
	ErrFull   = errors.New("too many listeners")
)

// Options change how a Hub works. The zero value works.
type Options struct {
	FileSize     int64 // bytes of a journal file, at which it is rotated; 0: 20 MiB
	Files        int   // files kept of a console, including the one being written; 0: 2
	Memory       int   // bytes of output kept for the slowest listener of a console; 0: 4 MiB
	Listeners    int   // in total; 0: 2048
	PerContainer int   // of one container, and of the node-wide ones; 0: 256
	Registerer   prometheus.Registerer
	Log          *slog.Logger
	Now          func() time.Time
}

// Bounds that are not configurable.
const (
	maxPiece  = 16 << 10 // bytes at which a console message is complete
	maxTake   = 16 << 10 // bytes at which Next returns; a client that does not read holds them
	minRing   = 64 << 10 // bytes of output that each console may always keep in memory, unless Memory is less
	allRings  = 8 << 20  // bytes of output in total, above which no console keeps more than minRing
	maxEvents = 1024     // state events waiting for a listener
	maxTail   = 10000    // lines of history
)

func (o Options) withDefaults() Options {
	if o.FileSize <= 0 {
		o.FileSize = 20 << 20
	}
	if o.Files <= 0 {
		o.Files = 2
	}
	if o.Memory <= 0 {
		o.Memory = 4 << 20
	}
	if o.Listeners <= 0 {
		o.Listeners = 2048
	}
	if o.PerContainer <= 0 {
		o.PerContainer = 256
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
