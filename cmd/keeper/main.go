// Command keeper is the first process of a server's container on Kubernetes, where it does
// what Docker's init does: it starts the command, reaps processes, translates SIGTERM into the
// stop signal of the spec, and exits with the command's exit code. A second keeper that an exec
// starts in the container sends a signal to the command.
//
//	keeper run [-stop SIGNAL] [-group] [-home DIR] -- COMMAND…
//	keeper signal [-group] SIGNAL
//
// It is a program of its own, because its memory counts towards the limit of each server.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The exit codes of a shell for a command that cannot be run.
const (
	notExecutable = 126
	notFound      = 127
)

// terminationLog is where Kubernetes reads why a container exited.
const terminationLog = "/dev/termination-log"

// nameOfFirst is where Linux shows the name of the first process, which is "keeper" and the process
// id of the command. Only a process itself can change its name.
const nameOfFirst = "/proc/1/comm"

func main() {
	if len(os.Args) < 2 {
		fail(2, errors.New("usage: keeper run|signal"))
	}
	flags := flag.NewFlagSet("keeper", flag.ExitOnError)
	stop := flags.String("stop", "SIGTERM", "signal that SIGTERM becomes")
	group := flags.Bool("group", false, "signal all processes of the command's group")
	home := flags.String("home", "", "HOME of a user without one")
	_ = flags.Parse(os.Args[2:]) // it exits on an error
	switch {
	case os.Args[1] == "run" && flags.NArg() > 0:
		run(flags.Args(), unix.SignalNum(*stop), *group, *home)
	case os.Args[1] == "signal" && flags.NArg() == 1:
		if err := send(unix.SignalNum(flags.Arg(0)), *group); err != nil {
			fail(1, err)
		}
	default:
		fail(2, errors.New("usage: keeper run|signal"))
	}
}

func fail(code int, err error) {
	fmt.Fprintln(os.Stderr, "keeper:", err)
	_ = os.WriteFile(terminationLog, []byte("keeper: "+err.Error()), 0) // an exec's is not read
	os.Exit(code)
}

// run starts the command and exits when it does.
func run(command []string, stop syscall.Signal, group bool, home string) {
	if home != "" && (os.Getenv("HOME") == "" || os.Getenv("HOME") == "/") {
		_ = os.Setenv("HOME", home)
	}
	path, err := exec.LookPath(command[0])
	if errors.Is(err, fs.ErrPermission) {
		fail(notExecutable, err)
	}
	if err != nil {
		fail(notFound, err)
	}
	signals := make(chan os.Signal, 32)
	signal.Notify(signals)
	// A session of its own: signals to its group do not reach the keeper.
	child, err := os.StartProcess(path, command, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		fail(notExecutable, err)
	}
	_ = os.WriteFile(nameOfFirst, []byte("keeper "+strconv.Itoa(child.Pid)), 0) // otherwise a send finds no command
	for {
		// The child may have exited before the first SIGCHLD could arrive, so it is waited for first.
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
			if err != nil || pid <= 0 {
				break
			}
			if pid == child.Pid {
				exit(status)
			}
		}
		forward(<-signals, child.Pid, stop, group)
	}
}

func exit(status unix.WaitStatus) {
	if status.Signaled() {
		os.Exit(128 + int(status.Signal()))
	}
	os.Exit(status.ExitStatus())
}

// forward sends a signal to the command, unless it is meant for the keeper itself.
func forward(s os.Signal, pid int, stop syscall.Signal, group bool) {
	number, ok := s.(syscall.Signal)
	if !ok || number == unix.SIGCHLD || number == unix.SIGURG || number == unix.SIGPIPE { // Go's runtime uses SIGURG
		return
	}
	if number == unix.SIGTERM {
		number = stop
	}
	_ = kill(pid, number, group) // it may have exited
}

func kill(pid int, s syscall.Signal, group bool) error {
	if group {
		return unix.Kill(-pid, s)
	}
	return unix.Kill(pid, s)
}

// send signals the command that the first process started. SIGKILL goes to every process of
// the container but the first, which then exits with the code of a killed command.
func send(s syscall.Signal, group bool) error {
	if s == 0 {
		return errors.New("unknown signal")
	}
	if s == unix.SIGKILL {
		return unix.Kill(-1, s) // it spares the first process and this one
	}
	name, err := os.ReadFile(nameOfFirst)
	if err != nil {
		return err
	}
	_, id, _ := strings.Cut(strings.TrimSpace(string(name)), " ")
	pid, err := strconv.Atoi(id)
	if err != nil {
		return fmt.Errorf("the first process is %q, and names no command", name)
	}
	return kill(pid, s, group)
}
