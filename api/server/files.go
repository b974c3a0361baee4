package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path"
	"strings"
	"time"

	"berth/api/auth"
	"berth/api/limit"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// files holds the handlers for the files of volumes.
type files struct {
	store    *store.Store
	settings auth.Settings
	bodies   *edge.Bodies
	files    Files
	sessions sessions
	permits  permits
	log      *slog.Logger
}

// directoryWait bounds how long a file operation waits for the directory of a new volume.
const directoryWait = 5 * time.Second

// onVolume calls do for the volume that the path of a request names, after it got
// a permit for file operations, and one of l unless l is nil. The context ends when
// the client disconnects, the session ends or the server shuts down.
func (s files) onVolume(c *call, l *limit.Slots, do func(ctx context.Context, f Files, id string) error) error {
	id, err := c.volumeID(s.store)
	if err != nil {
		return err
	}
	ctx, cancel := edge.Context(c.Ctx)
	defer cancel()
	ctx, done, err := s.sessions.beginOperation(ctx, c, id)
	if err != nil {
		return err
	}
	defer done()
	ctx = c.deny(ctx, s.store, id)
	leave, err := enter(ctx, c.claim(s.store, id), s.permits.files, l)
	defer leave()
	if err == nil {
		err = do(ctx, s.files, id)
	}
	if errors.Is(err, v1.ErrDirectoryMissing) && s.awaitCreated(ctx, id) {
		err = do(ctx, s.files, id)
	}
	ended := context.Cause(ctx)
	switch {
	case err != nil && (errors.Is(ended, auth.ErrUnauthorized) || errors.Is(ended, v1.ErrVolumeNotFound) ||
		errors.Is(ended, v1.ErrVolumeRestoring) || errors.Is(ended, v1.ErrTransferring)):
		return ended
	case errors.Is(err, io.ErrUnexpectedEOF):
		return edge.ErrMalformed // the body is shorter than announced
	}
	return err
}

// deny returns a context whose operations on a volume respect the denied_files of its containers, if the
// caller may access only some containers.
func (c *call) deny(ctx context.Context, db *store.Store, volume string) context.Context {
	if !c.caller.Restricted() {
		return ctx
	}
	return v1.WithDenied(ctx, store.DeniedFiles(db.Read(), volume))
}

// awaitCreated waits for the directory of a new volume. It reports whether the
// directory did not exist at first and does now.
func (s files) awaitCreated(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, directoryWait)
	defer cancel()
	waited := false
	v, err := store.Volumes.Await(ctx, s.store, id, func(v v1.Volume) bool {
		waited = waited || !v.Status.Created
		return v.Status.Created
	})
	return err == nil && waited && v.Status.Created
}

// pathQuery returns the required query parameter path, which obeys v1.DotsInNames.
func pathQuery(c *call) (string, error) {
	if !c.Context().QueryArgs().Has("path") {
		return "", v1.Errorf(v1.InvalidRequest, "path: is required")
	}
	p := c.Query("path")
	return p, checkPaths(v1.DotsInNames, p)
}

// folderQuery returns the query parameter path of a folder; the default is the root.
func folderQuery(c *call, rule v1.PathRule) (string, error) {
	p := c.Query("path")
	if p == "" {
		return ".", nil
	}
	return p, checkPaths(rule, p)
}

// checkPaths applies the path rules, before any lookup.
func checkPaths(rule v1.PathRule, paths ...string) error {
	for _, p := range paths {
		if _, err := v1.ParsePath(p, rule); err != nil {
			return err
		}
	}
	return nil
}

// checkNewFile applies the path rules to the path of a new file, which must not be that of a folder.
func checkNewFile(p string) error {
	err := checkPaths(v1.DotsInNames, p)
	switch {
	case err != nil:
		return err
	case path.Clean(p) == ".":
		return v1.ErrInvalidPath
	case strings.HasSuffix(p, "/"):
		return v1.Errorf(v1.InvalidRequest, "path: names a folder: append the name of the file")
	}
	return nil
}
