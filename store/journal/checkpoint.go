package journal

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// checkpoint records, in a file beside a journal, which of the engine's containers
// was read last, whether its output is complete, and up to where lines were removed.
// It is a hint: a lost or torn one counts as none. Its first line is that of an older
// berth, which ignores the rest.
type checkpoint struct {
	container string
	complete  bool
	after     int64 // the container's lines are newer, Unix ns; 0: there was none before
	removed   int64 // time of the last line that was removed by rotation, Unix ns; 0: none was
}

func readCheckpoint(path string) checkpoint {
	text, err := os.ReadFile(path)
	if err != nil {
		return checkpoint{}
	}
	var c checkpoint
	var state string
	first, second, _ := strings.Cut(string(text), "\n")
	c.removed, _ = strconv.ParseInt(strings.TrimSuffix(second, "\n"), 10, 64)
	_, err = fmt.Sscanf(first, "%s %s %d", &c.container, &state, &c.after)
	if err != nil || (state != "open" && state != "whole") {
		return checkpoint{removed: c.removed}
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
	text := fmt.Appendf(nil, "%s %s %d\n%d\n", c.container, state, c.after, c.removed)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
