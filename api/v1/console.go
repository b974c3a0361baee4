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

// Line is one line of a console, as it is kept.
type Line struct {
	Time    time.Time // the engine's, ns
	Data    []byte    // any bytes, without the line end
	Partial bool      // the line goes on in the next one
	Message bool      // said by berth, not by the container
}

// MarshalJSON writes {time, data}. Bytes that are no UTF-8 become U+FFFD.
func (l Line) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Time time.Time `json:"time"`
		Data string    `json:"data"`
	}{l.Time.UTC(), string(l.Data)})
}

// Resume is where a console's journal ends.
type Resume struct {
	Last      time.Time // of the newest line; zero: there is none
	Container string    // the engine's id of the one that was read last; empty: none
	Whole     bool      // all that that one printed is there
	Fresh     bool      // no line is there of the one that is read now
}
