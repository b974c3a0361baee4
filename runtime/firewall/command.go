package firewall

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	commandTime = 15 * time.Second
	maxStderr   = 2048 // bytes
)

// systemPath is where the tools are, whatever the daemon's own PATH says.
var systemPath = []string{"/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin"}

// run runs one tool to its end, with a deadline. It inherits nothing of the
// daemon's environment, which may hold tokens.
func run(ctx context.Context, name, input string, args ...string) (string, error) {
	path, err := find(name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"PATH=" + strings.Join(systemPath, ":"), "LC_ALL=C"}
	cmd.Stdin = strings.NewReader(input)
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		said := string(stderr.Bytes()[:min(stderr.Len(), maxStderr)])
		return "", fmt.Errorf("%s: %s: %w", name, strings.Join(strings.Fields(said), " "), cmp.Or(ctx.Err(), err))
	}
	return stdout.String(), nil
}

func find(name string) (string, error) {
	for _, dir := range systemPath {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// hopeless are parts of what the tools say when trying again will not help.
var hopeless = []string{
	"Permission denied", "Operation not permitted", "must be root",
	"is incompatible", "able does not exist", "Protocol not supported", "not supported by protocol",
}

// classify makes an *Unavailable of an error that time will not cure.
func (t *iptables) classify(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		tool, _, _ := strings.Cut(err.Error(), ":")
		return &Unavailable{Reason: tool + " is not installed", asked: t.asked}
	}
	for _, text := range hopeless {
		if strings.Contains(err.Error(), text) {
			return &Unavailable{Reason: err.Error(), asked: t.asked}
		}
	}
	return err
}
