package v1

import (
	"encoding/json"
	"time"
)

// The consoles of a container.
const (
	ServerConsole  = "server"
	InstallConsole = "install"
)

// Line is one stored line of a console.
type Line struct {
	Time    time.Time // the engine's, ns
	Data    []byte    // any bytes, without the line end
	Partial bool      // the line continues in the next one
	Message bool      // written by berth, not by the container
}

// MarshalJSON writes {time, data}. Invalid UTF-8 becomes U+FFFD.
func (l Line) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Time time.Time `json:"time"`
		Data string    `json:"data"`
	}{l.Time.UTC(), string(l.Data)})
}

// Resume is the position at the end of a console's journal.
type Resume struct {
	Last      time.Time // of the newest line; zero: there is none
	Container string    // the engine's id of the container that was read last; empty: none
	Complete  bool      // the journal has all output of that container
	Fresh     bool      // the journal has no line of the current container
}
