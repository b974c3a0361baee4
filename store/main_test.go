package store

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// children are what this test binary does instead of testing when it is run
// again as another process.
var children = map[string]func(dir string){
	"write": writeUntilKilled,
	"open":  openAndSay,
	"files": runOutOfFiles,
}

func TestMain(m *testing.M) {
	if child, ok := children[os.Getenv("STORE_CHILD")]; ok {
		child(os.Getenv("STORE_DIR"))
		return
	}
	_ = flag.Set("rapid.checks", "12") // of a race build; the command line may ask for more
	goleak.VerifyTestMain(m)
}
