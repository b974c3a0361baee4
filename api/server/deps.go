package server

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth/api/auth"
	"berth/api/limit"
	"berth/api/stream"
	"berth/api/ui"
	v1 "berth/api/v1"
	"berth/store"
)

// Settings is the active configuration.
type Settings interface {
	auth.Settings
	// Reload reads the configuration file again and returns the keys whose new
	// value takes effect at the next restart. On an error the old configuration
	// stays active; the client receives the text of the error.
	Reload() (restartRequired []string, err error)
}

// Console sends input to running containers.
type Console interface {
	// Send writes data to the container's standard input. It returns
	// v1.ErrNotRunning if the container does not run.
	Send(ctx context.Context, internalID string, data []byte) error
	// Resize changes the size of the container's terminal. It returns
	// v1.ErrNotRunning if the container does not run.
	Resize(ctx context.Context, internalID string, columns, rows uint) error
}

// Stats returns the resource usage of containers.
type Stats interface {
	// Stats returns the latest sample of a container, or v1.ErrNotRunning if it
	// does not run.
	Stats(ctx context.Context, internalID string) (v1.Stats, error)
	// Samples returns the latest sample of each of these containers that runs.
	Samples(ctx context.Context, internalIDs []string) map[string]v1.Stats
}

// EngineHealth is the observed availability of the engine. Since is the time of
// the last change of Reachable.
type EngineHealth struct {
	Reachable bool
	Since     time.Time
}

// FileReader reads the files of volumes. Paths are relative to the volume's root,
// "."; errors meant for clients are v1.Errors.
type FileReader interface {
	List(ctx context.Context, volume, path string) ([]v1.FileEntry, error)
	// Open opens a regular file and nothing else.
	Open(ctx context.Context, volume, path string) (*os.File, error)
	Search(ctx context.Context, volume, path, query string) (v1.SearchResult, error)
	// Types returns the media types of files; empty where none is known. It is bounded.
	Types(ctx context.Context, volume string, paths []string) ([]string, error)
	// Archive opens a folder as an archive, which outlives ctx.
	Archive(ctx context.Context, volume string, t v1.Tree) (v1.ArchiveStream, error)
}

// FileWriter changes the files of volumes.
type FileWriter interface {
	// Write replaces a file by content, atomically and durably, if check allows it, and
	// describes the new file. See volume.Manager.
	Write(ctx context.Context, volume, path string, content io.Reader, check func(old fs.FileInfo) error) (fs.FileInfo, error)
	Mkdir(ctx context.Context, volume, path string) error
	Copy(ctx context.Context, volume, source, destination string) error
	Rename(ctx context.Context, volume, source, destination string) error
	Delete(ctx context.Context, volume, path string, check func(content fs.FileInfo) error) error
	Chmod(ctx context.Context, volume, path string, mode fs.FileMode) error
}

// Archiver creates and extracts archives in volumes. The operations stop when ctx
// ends, and remove their partial results.
type Archiver interface {
	Compress(ctx context.Context, volume string, c v1.Compression) (v1.Archive, error)
	Decompress(ctx context.Context, volume string, d v1.Decompression) (v1.Extraction, error)
	// Extract is Decompress for an archive that arrives.
	Extract(ctx context.Context, volume string, archive io.Reader, d v1.Decompression) (v1.Extraction, error)
}

// Trees receives the volumes of containers that arrive from other nodes.
type Trees interface {
	// Tree writes the listing of a volume.
	Tree(ctx context.Context, volume string, w io.Writer, p v1.Priority) (v1.TreeSum, error)
	// Receive changes a volume as the sender's stream says. It may grow to most bytes.
	Receive(ctx context.Context, volume string, r io.Reader, most int64, p v1.Priority) error
	// Alone calls do while no other call for a volume receives. It returns v1.ErrVolumeRestoring while another one does.
	Alone(ctx context.Context, volume string, do func() error) error
	// Verified calls commit if the volume has a digest. Nothing changes it meanwhile.
	Verified(ctx context.Context, volume, digest string, commit func() error) error
}

// Files reads and changes the content of volumes.
type Files interface {
	FileReader
	FileWriter
	Archiver
}

// Archives opens the archives of backups, and receives those of other nodes.
type Archives interface {
	// Has reports whether a target is configured.
	Has(target v1.Target) bool
	// Fetch returns the file of an archive on this host, or a URL from which clients
	// download it under a name. It returns v1.ErrBackupNotFound if there is no archive.
	Fetch(ctx context.Context, target v1.Target, key, name string) (file *os.File, url string, err error)
	// List returns the entries of a folder of a completed backup. It reads the archive up to the end of the folder.
	List(ctx context.Context, b v1.Backup, folder string) ([]v1.FileEntry, error)
	// CheckSpace returns v1.ErrDiskFull if the host has no space for so many bytes of files and of archives that arrive.
	CheckSpace(files, archives int64) error
	// Receive stores the archive of a backup that arrives, from an offset on, or finds it in the bucket. If it is another one, the
	// error has the code v1.InvalidArchive, and if the bucket does not have it, v1.BackupNotFound. v1.Unavailable: the offset is
	// not what Arrived returns.
	Receive(ctx context.Context, b v1.ArrivalBackup, offset int64, archive io.Reader) error
	// Arrived returns how many bytes of an archive Receive has stored on this host, and whether these are all.
	Arrived(b v1.ArrivalBackup) (stored int64, all bool)
}

// Deps are the dependencies and settings of a Server. What a comment does not make optional is required
// by the requests that need it.
type Deps struct {
	Store      *store.Store
	Settings   Settings
	Hub        *stream.Hub
	Files      Files
	Archives   Archives
	Trees      Trees
	Console    Console
	Stats      Stats
	Engine     func() EngineHealth
	CheckMount func(source string) string // see intent.Policy; may be nil
	OwnAddress func(netip.Addr) bool      // reports whether an address is one of this host; nil: none is
	Node       func() v1.Node             // what the daemon has observed of its host
	Ready      func() []string            // reasons why the daemon is not ready; empty if it is
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	Page       func() (*ui.Page, error) // called once, by the first request for the page
	Log        *slog.Logger
	Version    string
	SpoolDir   string // for a backup of the store until it was sent; empty: os.TempDir()

	WrongTokens *limit.Rate // counts wrong tokens, together with those of SFTP
}
