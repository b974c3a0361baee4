package sftp

import (
	"context"
	"io/fs"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"berth/api/auth"
	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/store"
)

// Files reads volumes, and changes single entries in place. Paths are relative to the volume's
// root, "."; their ".." components are resolved. Errors meant for clients are v1.Errors.
type Files interface {
	Stat(ctx context.Context, volume, path string) (fs.FileInfo, error)
	Lstat(ctx context.Context, volume, path string) (fs.FileInfo, error)
	Readlink(ctx context.Context, volume, path string) (string, error)
	OpenFolder(ctx context.Context, volume, path string) (v1.FolderHandle, error)
	Space(ctx context.Context, volume string) (v1.VolumeSpace, error)
	// OpenFile opens a regular file and nothing else.
	OpenFile(ctx context.Context, volume, path string, mode v1.OpenMode) (v1.FileHandle, error)
	MakeFolder(ctx context.Context, volume, path string) error
	RemoveFile(ctx context.Context, volume, path string) error
	RemoveFolder(ctx context.Context, volume, path string) error
	// Move moves to a destination that must not exist; MoveOver replaces it.
	Move(ctx context.Context, volume, source, destination string) error
	MoveOver(ctx context.Context, volume, source, destination string) error
	Symlink(ctx context.Context, volume, target, path string) error
	SetAttributes(ctx context.Context, volume, path string, a v1.FileAttributes) (changed bool, err error)
}

// Deps are the dependencies of a Server. All are required.
type Deps struct {
	Store      *store.Store
	Settings   auth.Settings
	Files      Files
	Registerer prometheus.Registerer
	Log        *slog.Logger

	WrongTokens *limit.Rate // counts failed logins, together with the wrong tokens of the API
}
