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

// systemPath lists the directories of the tools, independent of the daemon's PATH.
const systemPath = "/usr/sbin:/sbin:/usr/local/sbin:/usr/bin:/bin"

// run runs a tool with a deadline and returns its standard output. The tool does not
// inherit the daemon's environment, which may contain tokens.
func run(ctx context.Context, name, input string, args ...string) (string, error) {
	path, err := find(name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"PATH=" + systemPath, "LC_ALL=C"}
	cmd.Stdin = strings.NewReader(input)
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		text := string(stderr.Bytes()[:min(stderr.Len(), maxStderr)])
		return "", fmt.Errorf("%s: %s: %w", name, strings.Join(strings.Fields(text), " "), cmp.Or(ctx.Err(), err))
	}
	return stdout.String(), nil
}

func find(name string) (string, error) {
	for _, dir := range filepath.SplitList(systemPath) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// classify returns an *Unavailable for an error that a retry does not fix, which the
// tools' messages show, and any other error unchanged.
func (t *iptables) classify(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		tool, _, _ := strings.Cut(err.Error(), ":")
		return &Unavailable{Reason: tool + " is not installed", asked: t.asked}
	}
	for _, text := range []string{
		"Permission denied", "Operation not permitted", "must be root",
		"is incompatible", "able does not exist", "Protocol not supported", "not supported by protocol",
	} {
		if strings.Contains(err.Error(), text) {
			return &Unavailable{Reason: err.Error(), asked: t.asked}
		}
	}
	return err
}
