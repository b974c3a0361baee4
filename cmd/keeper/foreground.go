package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a process of the keeper's session, which has all that the command has started but
// daemons with a session of their own.
type process struct {
	pid, group int
	alone      time.Time // since when nobody prints to it; zero: somebody does, or it was not looked at
}

// groups returns the process groups of the foreground: that of the command and, where the command
// is a shell with job control, that of the program that has the terminal.
func (k *keeper) groups() []int {
	list := []int{k.group}
	if front, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil && front > 1 && front != k.group && front != unix.Getpgrp() {
		list = append(list, front)
	}
	return list
}

// session returns the processes of the session but the keeper.
func session() (list []process) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	own, _ := unix.Getsid(0)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		group, err := unix.Getpgid(pid)
		if in, _ := unix.Getsid(pid); err == nil && in == own {
			list = append(list, process{pid: pid, group: group})
		}
	}
	return list
}

// foreground returns the processes of the foreground.
func (k *keeper) foreground() []process {
	groups := k.groups()
	return slices.DeleteFunc(session(), func(p process) bool { return !slices.Contains(groups, p.group) })
}

// sendAll sends a signal to the foreground. A program that reads the output of another one, such
// as tee, gets it if it does not exit after the other, or after half of the time that a stop may take: until
// then the other prints to it.
func (k *keeper) sendAll(s syscall.Signal) {
	k.last, k.sent = s, k.groups()
	all := k.foreground()
	k.behind = slices.DeleteFunc(slices.Clone(all), func(p process) bool { return !p.reads(all) })
	if len(k.behind) == 0 {
		for _, group := range k.groups() {
			_ = unix.Kill(-group, s) // it may have exited
		}
		return
	}
	k.late = time.Now().Add(k.wait / 2)
	for _, p := range all {
		if !slices.Contains(k.behind, p) {
			_ = unix.Kill(p.pid, s)
		}
	}
}

// readRest is the time in which a reader whose writers have exited reads the rest of their output, and exits.
const readRest = 500 * time.Millisecond

// sendBehind sends the last signal to those that sendAll has left and that do not exit although nobody
// prints to them any more.
func (k *keeper) sendBehind() {
	if len(k.behind) == 0 {
		return
	}
	all, now := k.foreground(), time.Now()
	var left []process
	for _, p := range k.behind {
		switch {
		case !slices.ContainsFunc(all, func(o process) bool { return o.pid == p.pid }):
			continue
		case p.reads(all):
			p.alone = time.Time{}
		case p.alone.IsZero():
			p.alone = now
		}
		if now.Before(k.late) && (p.alone.IsZero() || now.Sub(p.alone) < readRest) {
			left = append(left, p)
			continue
		}
		_ = unix.Kill(p.pid, k.last)
	}
	k.behind = left
}

// sendRest sends SIGTERM, once, to those that no signal has reached so far: a launcher that gives
// its child a group of its own, as tini does, and ends with it, has sent it to that child alone.
func (k *keeper) sendRest(rest []process) {
	for _, p := range rest {
		if !slices.Contains(k.sent, p.group) {
			k.sent = append(k.sent, p.group)
			_ = unix.Kill(-p.group, unix.SIGTERM)
		}
	}
}

// reads reports whether the standard input of p is a pipe that another process prints to.
func (p process) reads(others []process) bool {
	input := p.file(0)
	return strings.HasPrefix(input, "pipe:") && slices.ContainsFunc(others, func(o process) bool {
		return o != p && (o.file(1) == input || o.file(2) == input)
	})
}

// file returns what a file descriptor of p refers to; empty if the keeper may not know it.
func (p process) file(fd int) string {
	target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.pid, fd))
	return target
}

// ignores reports whether p ignores a signal.
func (p process) ignores(s syscall.Signal) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	for line := range strings.Lines(string(status)) {
		if mask, found := strings.CutPrefix(line, "SigIgn:"); found {
			set, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && set&(1<<(s-1)) != 0
		}
	}
	return false
}
