package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"
)

// ErrNotFound reports that there is no archive under a key.
var ErrNotFound = errors.New("archive not found")

// Target keeps archives under keys: at most 128 lower-case letters, digits, '-' and
// '.', the first a letter or a digit. It is safe for concurrent use with different
// keys.
type Target interface {
	// Put calls write, stores under key what it writes to w, and returns its size when it is
	// durable. Nothing of it is visible before, and nothing of it stays after an error; if it
	// could not be removed, the error contains the reason, and Delete or Abort removes it
	// later. An error of write is wrapped. The context of write also ends when the target
	// fails. Where the archive is a file, w is that *os.File.
	Put(ctx context.Context, key string, write func(ctx context.Context, w io.Writer) error) (size int64, err error)

	// Open returns the content of an archive from offset on, and the size of the whole.
	// ctx ends the reads as well. The error is ErrNotFound if there is no archive.
	Open(ctx context.Context, key string, offset int64) (content io.ReadCloser, size int64, err error)

	// Delete removes an archive, and what an interrupted Put left. It is no error if
	// there is none.
	Delete(ctx context.Context, key string) error

	// Abort removes what an interrupted Put left. A complete archive stays.
	Abort(ctx context.Context, key string) error
}

// Presigner is a Target from which clients can download directly.
type Presigner interface {
	// Presign returns a URL under which an archive can be downloaded until ttl has
	// passed, as a file with this name. It does not check that the archive exists.
	Presign(ctx context.Context, key, filename string, ttl time.Duration) (string, error)
}

var validKey = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,127}$`)

func checkKey(key string) error {
	if !validKey.MatchString(key) {
		return fmt.Errorf("%q is not a key: use at most 128 lower-case letters, digits, '-' and '.'", key)
	}
	return nil
}
