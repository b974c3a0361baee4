package berthtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// binary builds berth once in each test process, with the keeper beside it. The build does
// nothing if the file is up to date.
var binary = sync.OnceValues(func() (string, error) {
	if _, err := keeper(); err != nil {
		return "", err
	}
	return build("berth"+raceSuffix, "./cmd/berth", raceFlag, "CGO_ENABLED="+cgo)
})

var keeper = sync.OnceValues(func() (string, error) {
	return build("berth-keeper", "./cmd/keeper", "-ldflags=-s -w", "CGO_ENABLED=0")
})

// build builds a program of the module in a folder that all tests share, and returns its path.
func build(name, of, flag, env string) (string, error) {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	dir := filepath.Join(root, ".cache", "berthtest")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	command := exec.Command("go", "build", flag, "-o", path, of)
	command.Dir = root
	command.Env = append(os.Environ(), env)
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// Binary returns the path of berth, built from this tree, with the race detector if the
// test has it too.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Keeper returns the path of berth-keeper, built from this tree.
func Keeper(t testing.TB) string {
	t.Helper()
	path, err := keeper()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
