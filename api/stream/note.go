package stream

import (
	"fmt"
	"os"
)

// A note beside a journal says which of the engine's containers was read last,
// and whether it was read to its end. It is a hint: a lost or torn one is none.
type checkpoint struct {
	container string
	whole     bool
	after     int64 // lines of it are newer, Unix ns; 0: there was none before
}

func readCheckpoint(path string) checkpoint {
	text, err := os.ReadFile(path)
	if err != nil {
		return checkpoint{}
	}
	var n checkpoint
	var state string
	_, err = fmt.Sscanf(string(text), "%s %s %d\n", &n.container, &state, &n.after)
	if err != nil || (state != "open" && state != "whole") {
		return checkpoint{}
	}
	n.whole = state == "whole"
	return n
}

// write replaces the note in one step: berth may be killed at any time.
func (n checkpoint) write(path string) error {
	state := "open"
	if n.whole {
		state = "whole"
	}
	if err := os.WriteFile(path+".new", fmt.Appendf(nil, "%s %s %d\n", n.container, state, n.after), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
