package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
)

// number reads a file that contains one number. It returns 0 for "max".
func number(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	text = bytes.TrimSpace(text)
	if string(text) == "max" {
		return 0, nil
	}
	n, err := integer(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

// integer parses a number; one that exceeds an int64 becomes the largest int64.
func integer(text []byte) (int64, error) {
	n, err := strconv.ParseUint(string(text), 10, 64)
	return int64(min(n, math.MaxInt64)), err
}

// field reads the number after key in a file of "key number" lines, which may have a unit.
func field(path, key string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) >= 2 && string(f[0]) == key {
			return integer(f[1])
		}
	}
	return 0, fmt.Errorf("%s: no %s", path, key)
}

// blkio sums "8:0 Read 4096" lines over all devices.
func blkio(group string) (read, write int64, err error) {
	for _, name := range []string{"blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"} {
		text, err := os.ReadFile(filepath.Join(group, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		for line := range bytes.Lines(text) {
			f := bytes.Fields(line)
			if len(f) != 3 {
				continue
			}
			n, _ := integer(f[2])
			switch string(f[1]) {
			case "Read":
				read += n
			case "Write":
				write += n
			}
		}
		return read, write, nil
	}
	return 0, 0, nil
}

// iostat sums "8:0 rbytes=4096 wbytes=0 ..." lines over all devices.
func iostat(path string) (read, write int64, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	for word := range bytes.FieldsSeq(text) {
		key, value, _ := bytes.Cut(word, []byte{'='})
		n, _ := integer(value)
		switch string(key) {
		case "rbytes":
			read += n
		case "wbytes":
			write += n
		}
	}
	return read, write, nil
}

// network sums the bytes that all interfaces except the loopback received and sent,
// in the network namespace of a process.
func network(path string) (rx, tx int64, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	for line := range bytes.Lines(text) {
		name, counters, ok := bytes.Cut(line, []byte{':'})
		f := bytes.Fields(counters)
		if !ok || len(f) < 9 || string(bytes.TrimSpace(name)) == "lo" {
			continue
		}
		in, _ := integer(f[0])
		out, _ := integer(f[8])
		rx, tx = rx+in, tx+out
	}
	return rx, tx, nil
}

// hostMemory returns the memory of the host in bytes, or 0 if it is unknown.
func hostMemory(proc string) int64 {
	n, err := field(filepath.Join(proc, "meminfo"), "MemTotal:")
	if err != nil {
		return 0
	}
	return n << 10
}
