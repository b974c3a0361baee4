package journal

import (
	"encoding/json"
	"os"
)

// checkpoint records, in a file beside a journal, which of the engine's containers was read last for a
// role, and whether its output is complete. It is a hint: a lost or torn one counts as none.
type checkpoint struct {
	Container string `json:"container"`
	Complete  bool   `json:"complete"`
	From      int64  `json:"from"` // offset in the journal of the first line that may be the container's
}

func readCheckpoint(path string) (c checkpoint) {
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &c) != nil {
		return checkpoint{}
	}
	return c
}

// write replaces the file in one step: berth may be killed at any time.
func (c checkpoint) write(path string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return replaceFile(path, text)
}
