// Command keeper is the first process of a container: it starts the command in a process group of
// its own, which is the foreground of the terminal if there is one, reaps processes, sends each signal
// that it receives to the foreground, and exits with the command's exit code. Where the command
// has ended by a signal, or after one, the keeper waits for the rest of the foreground: a game whose
// shell the signal has ended saves until it is done. On Kubernetes a second keeper, which an
// exec starts in the container, has the first one send a signal.
//
//	keeper run [-wait TIME] [-stop SIGNAL] [-home DIR] -- COMMAND…
//	keeper signal SIGNAL
//	keeper hold [-wait TIME]
//	keeper asked
//
// On Kubernetes "keeper hold" is the hook before the kubelet sends SIGTERM to a container whose pod others have
// deleted: the engine asks the command to exit in its own way first.
//
// It is a program of its own, because its memory counts towards the limit of each container.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The exit codes of a shell for a command that cannot be run.
const (
	notExecutable = 126
	notFound      = 127
)

// terminationLog is where Kubernetes reads why a container exited.
const terminationLog = "/dev/termination-log"

func main() {
	if len(os.Args) < 2 {
		fail(2, errors.New("usage: keeper run|signal|hold|asked"))
	}
	flags := flag.NewFlagSet("keeper", flag.ExitOnError)
	stop := flags.String("stop", "SIGTERM", "signal that SIGTERM becomes")
	wait := flags.Duration("wait", 10*time.Second, "time for the rest of the foreground after a signal")
	home := flags.String("home", "", "HOME of a user without one")
	flags.Bool("group", false, "ignored: of containers that an older berth has created")
	_ = flags.Parse(os.Args[2:]) // it exits on an error
	switch {
	case os.Args[1] == "run" && flags.NArg() > 0:
		k := &keeper{stop: unix.SignalNum(*stop), wait: *wait}
		os.Exit(k.run(flags.Args(), *home))
	case os.Args[1] == "signal" && flags.NArg() == 1:
		if err := send(unix.SignalNum(flags.Arg(0))); err != nil {
			fail(1, err)
		}
	case os.Args[1] == "hold":
		hold(*wait)
	case os.Args[1] == "asked":
		if err := os.WriteFile(askedFile, nil, 0o600); err != nil {
			fail(1, err)
		}
	default:
		fail(2, errors.New("usage: keeper run|signal|hold|asked"))
	}
}

func fail(code int, err error) {
	fmt.Fprintln(os.Stderr, "keeper:", err)
	writeTerminationLog("keeper: " + err.Error())
	os.Exit(code)
}

// writeTerminationLog writes a reason where Kubernetes reads it. That of an exec is not read, and Docker has no such file.
func writeTerminationLog(reason string) {
	if log, err := os.OpenFile(terminationLog, os.O_WRONLY, 0); err == nil {
		_, _ = log.WriteString(reason)
	}
}

// send has the first process send a signal to the command. SIGKILL goes to every process of the
// container but the first, which then exits with the code of a killed command.
func send(s syscall.Signal) error {
	switch s {
	case 0:
		return errors.New("unknown signal")
	case unix.SIGKILL:
		return unix.Kill(-1, s) // it spares the first process and this one
	}
	return unix.Kill(1, s)
}

// askedFile exists once the engine has asked the command to exit while others end the container. Every user
// may write there, also beside a read-only root, and it is empty in each new pod.
const askedFile = "/dev/shm/.berth-asked"

// hold returns after a time, in which the engine may ask the command to exit. If it has, hold does not return: it ends
// with the container, or with the time that the kubelet gives both.
func hold(wait time.Duration) {
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(tick) {
		if _, err := os.Stat(askedFile); err == nil {
			end = time.Now().Add(time.Hour)
		}
	}
}

// keeper is the first process of a container, and what it knows of the command.
type keeper struct {
	stop syscall.Signal // that SIGTERM becomes
	wait time.Duration  // for the rest of the foreground, after a signal

	group  int            // process group, and process id, of the command
	last   syscall.Signal // that the foreground was sent; 0: none
	sent   []int          // process groups that got it
	behind []process      // of the foreground that get it later, see sendAll
	late   time.Time      // when they get it at the latest
	status *unix.WaitStatus
	killed bool // a process was killed that the keeper awaited after the command's exit
}

// run starts the command, and returns its exit code.
func (k *keeper) run(command []string, home string) int {
	if home != "" && (os.Getenv("HOME") == "" || os.Getenv("HOME") == "/") {
		_ = os.Setenv("HOME", home)
	}
	warm()
	_, _ = unix.Setsid() // an engine has done that
	giveSize()
	children, signals := make(chan os.Signal, 1), make(chan os.Signal, 64)
	signal.Notify(children, unix.SIGCHLD)
	signal.Notify(signals, forwarded()...)
	k.start(command)
	memory := newMemory()
	defer func() {
		if memory.survived() {
			writeTerminationLog(survived)
		}
	}()
	ticker := time.NewTicker(memory.period())
	var end time.Time
	for {
		if k.reap(); k.status != nil && end.IsZero() {
			if !k.goesOn() {
				return exitCode(*k.status)
			}
			end = time.Now().Add(k.wait)
			ticker.Reset(tick)
		}
		if !end.IsZero() {
			rest := session()
			switch {
			case k.killed, len(rest) > 0 && time.Now().After(end):
				return 128 + int(unix.SIGKILL)
			case len(rest) == 0 && unix.Kill(-k.group, 0) == unix.ESRCH:
				return exitCode(*k.status)
			case time.Now().After(end.Add(-k.wait / 2)):
				k.sendRest(rest)
			}
		}
		if k.sendBehind(); len(k.behind) > 0 {
			ticker.Reset(tick)
		}
		select {
		case s := <-signals:
			if s == unix.SIGTERM {
				s = k.stop
			}
			k.sendAll(s.(syscall.Signal)) // as every signal of os/signal is
		case <-children:
		case <-ticker.C:
			memory.look()
		}
	}
}

// forwarded returns the signals that are sent on: all but those that are for the keeper, or that Go's
// runtime uses. Those of children have a channel of their own, which they may fill.
func forwarded() (list []os.Signal) {
	for s := syscall.Signal(1); s <= lastSignal; s++ {
		if s != unix.SIGCHLD && s != unix.SIGURG && s != unix.SIGPIPE {
			list = append(list, s)
		}
	}
	return list
}

const lastSignal = 64

// tick is the time between two looks at processes whose exit the keeper may not learn of.
const tick = 50 * time.Millisecond

// warm makes the threads that the Go runtime may need later: in a container that uses all the
// processes that it may have, a new one would be refused, and end the keeper.
func warm() {
	runtime.GOMAXPROCS(1)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			_ = unix.Nanosleep(&unix.Timespec{Nsec: int64(5 * time.Millisecond)}, nil)
		})
	}
	all.Wait()
}

// giveSize gives a terminal without a size, as engines make them, the size that it has until a client changes it. The
// kernel then sends SIGWINCH to the foreground, which is still the keeper: it would forward that signal to a command that
// has just started.
func giveSize() {
	if size, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ); err == nil && *size == (unix.Winsize{}) {
		signal.Ignore(unix.SIGWINCH) // until the keeper asks for signals
		_ = unix.IoctlSetWinsize(0, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120})
	}
}

// start starts the command. A file without #! is a script of the shell, as it is for a shell.
func (k *keeper) start(command []string) {
	path, err := exec.LookPath(command[0])
	if errors.Is(err, fs.ErrPermission) {
		fail(notExecutable, err)
	}
	if err != nil {
		fail(notFound, err)
	}
	attr := &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Setpgid: true}}
	child, err := os.StartProcess(path, command, attr)
	if errors.Is(err, unix.ENOEXEC) {
		child, err = os.StartProcess("/bin/sh", append([]string{"/bin/sh", path}, command[1:]...), attr)
	}
	if err != nil {
		fail(notExecutable, err)
	}
	k.group = child.Pid
	if own, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil && own == unix.Getpgrp() {
		_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, k.group) // see continueStopped
	}
}

// reap collects the processes that have exited, and the status of the command.
func (k *keeper) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WUNTRACED, nil)
		if err != nil || pid <= 0 {
			return
		}
		switch {
		case status.Stopped():
			k.continueStopped(status.StopSignal())
		case pid == k.group && k.status == nil:
			k.status = &status
		case k.status != nil && status.Signaled() && status.Signal() == unix.SIGKILL:
			k.killed = true
		}
	}
}

// continueStopped sends SIGCONT to the command if the kernel has stopped it because it used the terminal before start
// made it the foreground. A command that was not stopped gets no SIGCONT: tini reports a signal that it cannot forward
// yet, in the middle of the output of its child.
func (k *keeper) continueStopped(stopped syscall.Signal) {
	front, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err == nil && front == k.group && (stopped == unix.SIGTTIN || stopped == unix.SIGTTOU) {
		_ = unix.Kill(-k.group, unix.SIGCONT)
	}
}

// goesOn reports whether the keeper waits for the rest of the foreground after the command's exit:
// a signal was sent, or the terminal or somebody in the container has sent it. What of it ignores that
// signal, as programs do that a shell has started with &, gets SIGTERM.
func (k *keeper) goesOn() bool {
	switch s := syscall.Signal(exitCode(*k.status) - 128); s { // a shell exits with that code too
	case unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM:
		k.last, k.sent = s, k.groups()
	case unix.SIGKILL: // out of memory, or killed
		return false
	}
	if k.last == 0 {
		return false
	}
	for _, p := range k.foreground() {
		if p.ignores(k.last) {
			_ = unix.Kill(p.pid, unix.SIGTERM)
		}
	}
	return true
}

// exitCode returns the exit code of a shell for a status.
func exitCode(status unix.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
