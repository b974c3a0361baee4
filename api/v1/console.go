package v1

import "time"

// The consoles of a container.
const (
	ServerConsole  = "server"
	InstallConsole = "install"
)

// MaxLine is the number of bytes that a stored line of a console has at most. A longer one is stored in
// pieces.
const MaxLine = 16 << 10

// Line is one stored line of a console.
type Line struct {
	Time    time.Time // the engine's, ns
	Shown   time.Time // the time in the API, if it differs from Time: those of a container's lines rise strictly
	Data    []byte    // any bytes, without the line end
	Partial bool      // the line continues in the next one
	Message bool      // written by berth, not by the container
}

// At returns the time of the line in the API, which no other line of the container has.
func (l Line) At() time.Time {
	if l.Shown.IsZero() {
		return l.Time
	}
	return l.Shown
}

// Resume is the position at the end of a console's journal.
type Resume struct {
	Last      time.Time // of the newest line; zero: there is none
	Container string    // the engine's id of the container that was read last; empty: none
	Complete  bool      // the journal has all output of that container
	Fresh     bool      // the journal has no line of the current container
}

// Logs is a part of a container's console.
type Logs struct {
	Lines   []LogLine `json:"lines"`             // oldest first; no two have the same time
	Line    string    `json:"line"`              // the cursor behind the last of Lines
	Missing string    `json:"missing,omitempty"` // why lines behind a cursor are missing; empty: none are
}

// LogLine is one line of a console in the API.
type LogLine struct {
	Time time.Time `json:"time"`
	Data string    `json:"data"`
}
