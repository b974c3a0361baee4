package store

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
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

// writeUntilKilled creates containers from eight goroutines, and prints the id
// of each once it is acknowledged.
func writeUntilKilled(dir string) {
	s, err := Open(dir, Options{})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	base := s.Revision()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d-%d", base, w, i)
				err := s.Update(func(tx *Tx) error {
					Emit(tx, v1.Event{Container: id, Event: v1.EventState, Data: "ready"})
					return Containers.Create(tx, id, v1.ContainerSpec{InstallScript: strings.Repeat("x", 500)})
				})
				if err != nil {
					fmt.Println("error", err)
					return
				}
				os.Stdout.WriteString(id + "\n")
			}
		})
	}
	wg.Wait()
}

// openAndSay prints what became of Open, and ends when its input does.
func openAndSay(dir string) {
	s, err := Open(dir, Options{})
	fmt.Println(describe(err))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Println(describe(s.Close()))
}

func describe(err error) string {
	for name, target := range map[string]error{"locked": ErrLocked, "damaged": ErrDamaged, "full": ErrDiskFull} {
		if errors.Is(err, target) {
			return name
		}
	}
	if err != nil {
		return "failed"
	}
	return "opened"
}

// runOutOfFiles updates with no file descriptor left, and then with some.
func runOutOfFiles(dir string) {
	s, err := Open(dir, Options{})
	fmt.Println(describe(err))
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64})
	var open []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		open = append(open, f)
	}
	fmt.Println(errors.Is(create(s, "none"), ErrFailed), s.View(func(*Tx) error { return nil }))
	for _, f := range open {
		f.Close()
	}
	fmt.Println(create(s, "some"), s.Revision(), s.Close())
}
