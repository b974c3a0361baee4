package keeper

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"berth/runtime"
)

// Dir and Path are where a container sees the folder of the program, and the program.
const (
	Dir  = "/.berth"
	Path = Dir + "/" + name
)

// Pids is how many processes and threads the program has at most, which the kernel counts with those of the
// container: a container that may have few would not start.
const Pids = 10

const (
	name    = "keeper"
	folders = ".keeper" // in the directory of the volumes, where no volume's name begins with a dot
)

// defaultWait is the time for the processes of a container without a stop timeout.
const defaultWait = 10 * time.Second

// Keeper is the program in the directory of the volumes, which engines see too. It is safe for
// concurrent use.
type Keeper struct {
	mu     sync.Mutex // held while the program is copied
	folder string     // empty: it was not copied yet
}

// Folder copies the program at a path to the directory of the volumes unless it is there, which may be
// restored or tidied up at any time, and returns its folder, relative to that directory.
func (k *Keeper) Folder(path, volumes string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := os.Stat(filepath.Join(volumes, k.folder, name)); err == nil && k.folder != "" {
		return k.folder, nil
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the first process of containers: %w: install berth-keeper beside berth", err)
	}
	sum := sha256.Sum256(program)
	folder := filepath.Join(folders, hex.EncodeToString(sum[:8]))
	dir := filepath.Join(volumes, folder)
	part := filepath.Join(dir, "part")
	err = errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(part, program, 0o755),
		os.Chmod(dir, 0o755), os.Chmod(part, 0o755)) // whatever the umask: containers have any user
	if err == nil {
		err = os.Rename(part, filepath.Join(dir, name))
	}
	if err != nil {
		return "", fmt.Errorf("copy the first process of containers: %w", err)
	}
	k.folder = folder
	return folder, nil
}

// Existing returns a folder of the program, or that of Folder if it is gone.
func (k *Keeper) Existing(volumes, folder string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := os.Stat(filepath.Join(volumes, folder, name)); errors.Is(err, fs.ErrNotExist) && k.folder != "" {
		return k.folder
	}
	return folder
}

// Command returns the command line of a container: the keeper with the command of s. stop is the
// signal that SIGTERM becomes; empty: none.
func Command(s runtime.Spec, stop string) []string {
	list := []string{Path, "run", "-wait", cmp.Or(s.StopTimeout, defaultWait).String()}
	if stop != "" {
		list = append(list, "-stop", stop)
	}
	if s.Home != "" {
		list = append(list, "-home", s.Home)
	}
	return append(append(list, "--"), s.Command...)
}

// holdLimit is how long an engine may take to learn that others end a container, and to ask its command to exit.
const holdLimit = 5 * time.Second

// Hold returns the command line that others have to await before they send SIGTERM to a container of s: the
// engine asks its command to exit meanwhile. Half of the stop timeout is left in any case.
func Hold(s runtime.Spec) []string {
	return []string{Path, "hold", "-wait", min(holdLimit, cmp.Or(s.StopTimeout, defaultWait)/2).String()}
}

// Survived is the reason of an exit, in the termination log of Kubernetes, which is not one for want of memory although the
// kernel has killed a process of the run: the run has gone on since.
const Survived = "went on after the kernel had killed a process for its memory"

// Asked returns the command line that has Hold wait until the command has exited: it was asked to.
func Asked() []string { return []string{Path, "asked"} }
