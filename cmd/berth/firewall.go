package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"berth/runtime/firewall"
	"berth/store"
)

// removeRules removes the firewall rules of the store in a data directory from the host,
// and reports whether there were any.
func removeRules(ctx context.Context, dataPath string) (changed bool, err error) {
	dir := filepath.Join(dataPath, "store")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("there is no store in %s: name the configuration of the daemon with --config", dataPath)
	}
	s, err := store.Open(dir, store.Options{})
	if errors.Is(err, store.ErrLocked) {
		return false, fmt.Errorf("%w: stop the daemon first, it would add the rules again", err)
	}
	if err != nil {
		return false, err
	}
	changed, err = firewall.Remove(ctx, s.ID(), slog.New(slog.DiscardHandler))
	return changed, errors.Join(err, s.Close())
}
