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

// children are the functions that this test binary runs instead of tests when a test
// starts it as another process.
var children = map[string]func(dir string){
	"write": writeUntilKilled,
	"open":  openAndPrint,
	"files": runOutOfFiles,
}

func TestMain(m *testing.M) {
	if child, ok := children[os.Getenv("STORE_CHILD")]; ok {
		child(os.Getenv("STORE_DIR"))
		return
	}
	_ = flag.Set("rapid.checks", "12") // a race build is slow; the command line may set more
	goleak.VerifyTestMain(m)
}

// writeUntilKilled creates containers in eight goroutines, and prints the id of each
// after its update has returned.
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
					tx.Emit(v1.Event{Container: id, Event: v1.EventState, Data: "ready"})
					return Containers.Create(tx, id, v1.ContainerSpec{InstallScript: new(strings.Repeat("x", 500))})
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

// openAndPrint prints the result of Open, and ends when its input ends.
func openAndPrint(dir string) {
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

// runOutOfFiles updates the store without free file descriptors, and then with some.
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
	_, err = ReadEvents(s.Read(), 0, 1)
	fmt.Println(errors.Is(create(s, "none"), ErrFailed), err)
	for _, f := range open {
		f.Close()
	}
	fmt.Println(create(s, "some"), s.Revision(), s.Close())
}
