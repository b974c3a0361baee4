package stream

import (
	"fmt"
	"os"
	"strings"
)

// A note beside a journal says which of the engine's containers was read last,
// and whether it was read to its end. It is a hint: a lost or torn one is none.
type note struct {
	container string
	whole     bool
}

func readNote(path string) note {
	text, err := os.ReadFile(path)
	if err != nil {
		return note{}
	}
	words := strings.Fields(string(text))
	if len(words) != 2 || (words[1] != "open" && words[1] != "whole") {
		return note{}
	}
	return note{container: words[0], whole: words[1] == "whole"}
}

func (n note) write(path string) error {
	state := "open"
	if n.whole {
		state = "whole"
	}
	return os.WriteFile(path, fmt.Appendf(nil, "%s %s\n", n.container, state), 0o600)
}
