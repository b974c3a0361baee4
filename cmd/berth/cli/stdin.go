package cli

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// input reads a file until stop is called, also while a read waits for a person.
type input struct {
	f            *os.File
	wake, waking *os.File // a pipe: closing waking wakes the read
}

func newInput(f *os.File) (*input, error) {
	wake, waking, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &input{f, wake, waking}, nil
}

// Read reads from the file. After stop it returns io.EOF.
func (i *input) Read(p []byte) (int, error) {
	const ready = unix.POLLIN | unix.POLLHUP | unix.POLLERR
	for {
		set := []unix.PollFd{{Fd: int32(i.f.Fd()), Events: unix.POLLIN}, {Fd: int32(i.wake.Fd()), Events: unix.POLLIN}}
		_, err := unix.Poll(set, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case set[1].Revents&ready != 0:
			return 0, io.EOF
		case set[0].Revents != 0:
			return i.f.Read(p)
		}
	}
}

// stop ends the reads. It is called once.
func (i *input) stop() { _ = i.waking.Close() }

// close releases the pipe. No read may be in progress.
func (i *input) close() { _ = i.wake.Close() }
