package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	v1 "berth/api/v1"
	"berth/store"
)

// FileReader reads what is in volumes. Paths are relative to the volume's root
// folder, "."; every refusal is a v1.Error.
type FileReader interface {
	List(ctx context.Context, volume, path string) ([]v1.FileEntry, error)
	// Open opens a regular file and nothing else.
	Open(ctx context.Context, volume, path string) (*os.File, error)
	Search(ctx context.Context, volume, path, query string) (v1.SearchResult, error)
}

// FileWriter changes what is in volumes.
type FileWriter interface {
	// Write replaces a file by content, whole and durable or not at all.
	Write(ctx context.Context, volume, path string, content io.Reader) error
	Mkdir(ctx context.Context, volume, path string) error
	Copy(ctx context.Context, volume, source, destination string) error
	Rename(ctx context.Context, volume, source, destination string) error
	Delete(ctx context.Context, volume, path string) error
	Chmod(ctx context.Context, volume, path string, mode fs.FileMode) error
}

// Archiver makes archives in volumes and unfolds them. Both end with ctx and
// leave nothing half-done.
type Archiver interface {
	Compress(ctx context.Context, volume string, c v1.Compression) (v1.Archive, error)
	Decompress(ctx context.Context, volume, archive, destination string) error
}

// Files does what is asked of the content of volumes.
type Files interface {
	FileReader
	FileWriter
	Archiver
}

// files answers what is about the files of volumes.
type files struct{ volumes }

// routes are the routes of volumes' files.
func (s files) routes() []route {
	const files = "/volumes/:volume/files"
	return []route{
		readable(get(files, v1.ScopeFiles, s.listFiles)),
		post(files, v1.ScopeFiles, s.writeFile),
		del(files, v1.ScopeFiles, s.deleteFile),
		readable(get(files+"/search", v1.ScopeFiles, s.searchFiles)),
		link(readable(get(files+"/content", v1.ScopeFiles, s.download))),
		anyAccept(put(files+"/content", v1.ScopeFiles, s.uploadFile)),
		post("/volumes/:volume/folders", v1.ScopeFiles, s.makeFolder),
		post("/volumes/:volume/copy", v1.ScopeFiles, s.copyFile),
		post("/volumes/:volume/rename", v1.ScopeFiles, s.renameFile),
		post("/volumes/:volume/chmod", v1.ScopeFiles, s.chmodFile),
		post("/volumes/:volume/compress", v1.ScopeFiles, s.compress),
		post("/volumes/:volume/decompress", v1.ScopeFiles, s.decompress),
	}
}

// readable lets a token use the route that may read.
func readable(r route) route {
	r.orScope = v1.ScopeRead
	return r
}

// createWait bounds how long a file operation waits for a new volume's directory.
const createWait = 5 * time.Second

// onVolume does something with the files of the volume that a request's path
// names, once there is a permit for it, also one of l unless that is nil. Its context
// ends when the client leaves or the server is shut down.
func (s files) onVolume(c *fiber.Ctx, l *limiter, do func(ctx context.Context, f Files, id string) error) error {
	id, err := s.volumeID(c)
	if err != nil {
		return err
	}
	if s.deps.Files == nil {
		return errUnavailable
	}
	ctx, cancel := withClient(c)
	defer cancel()
	ctx, done, err := beginOperation(s.Server, c, ctx, id)
	if err != nil {
		return err
	}
	defer done()
	leave, err := enter(ctx, id, callerOf(c).TokenID, s.permits.files, l)
	defer leave()
	if err == nil {
		err = do(ctx, s.deps.Files, id)
	}
	if errors.Is(err, v1.ErrDirectoryMissing) && s.awaitCreated(ctx, id) {
		err = do(ctx, s.deps.Files, id)
	}
	ended := context.Cause(ctx)
	switch {
	case err != nil && (errors.Is(ended, auth.ErrUnauthorized) || errors.Is(ended, v1.ErrVolumeNotFound)):
		return ended
	case errors.Is(err, context.Canceled):
		return errUnavailable // nobody reads it, unless the server is shut down
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errMalformed // the body was cut off
	}
	return err
}

// awaitCreated waits for the directory of a volume that was never made, and says
// whether it was one.
func (s files) awaitCreated(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, createWait)
	defer cancel()
	waited := false
	v, err := store.Volumes.Await(ctx, s.store, id, func(v v1.Volume) bool {
		waited = waited || !v.Status.Created
		return v.Status.Created
	})
	return err == nil && waited && v.Status.Created
}

// folderQuery is the parameter path where it names a folder: empty is the root.
func folderQuery(c *fiber.Ctx) (string, error) {
	path := c.Query("path")
	if path == "" {
		return ".", nil
	}
	return path, v1.CheckPath(path)
}

// checkPaths applies the path rules before anything is looked up.
func checkPaths(paths ...string) error {
	for _, p := range paths {
		if err := v1.CheckPath(p); err != nil {
			return err
		}
	}
	return nil
}
