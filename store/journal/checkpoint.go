package journal

import (
	"fmt"
	"os"
)

// checkpoint records, in a file beside a journal, which of the engine's containers was read last for a
// role, and whether its output is complete. It is a hint: a lost or torn one counts as none.
type checkpoint struct {
	container string
	complete  bool
	after     int64 // the container's lines are newer, Unix ns; 0: there was none before
}

func readCheckpoint(path string) checkpoint {
	text, err := os.ReadFile(path)
	if err != nil {
		return checkpoint{}
	}
	var c checkpoint
	var state string
	_, err = fmt.Sscanf(string(text), "%s %s %d\n", &c.container, &state, &c.after)
	if err != nil || (state != "open" && state != "whole") {
		return checkpoint{}
	}
	c.complete = state == "whole"
	return c
}

// write replaces the file in one step: berth may be killed at any time.
func (c checkpoint) write(path string) error {
	state := "open"
	if c.complete {
		state = "whole"
	}
	return replaceFile(path, fmt.Appendf(nil, "%s %s %d\n", c.container, state, c.after))
}
