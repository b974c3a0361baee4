package archiver

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"syscall"

	v1 "berth/api/v1"
)

// message is what the process sends while it writes an archive.
type message struct {
	Read   int64        `json:"read"`             // bytes of files that were read so far
	Size   int64        `json:"size,omitempty"`   // bytes of the archive, with Result
	Result *v1.Snapshot `json:"result,omitempty"` // only in the last message, if the archive is complete
	Error  *failure     `json:"error,omitempty"`  // only in the last message, if it is not
}

// failure is an error that another process receives.
type failure struct {
	Code  v1.Code       `json:"code,omitempty"`  // of a refusal
	Op    string        `json:"op,omitempty"`    // that failed with Errno
	Errno syscall.Errno `json:"errno,omitempty"` // of a failed system call
	Text  string        `json:"text"`
}

func newFailure(err error) *failure {
	f := &failure{Text: err.Error()}
	var refusal *v1.Error
	var path *fs.PathError
	switch {
	case errors.As(err, &refusal):
		f.Code, f.Text = refusal.Code, refusal.Message
	case errors.As(err, &f.Errno) && errors.As(err, &path):
		f.Op = path.Op
	}
	return f
}

// err returns the error that newFailure received, as far as users of a volume can tell
// them apart.
func (f *failure) err() error {
	switch {
	case f.Code != "":
		return &v1.Error{Code: f.Code, Message: f.Text}
	case f.Errno != 0:
		return &fs.PathError{Op: f.Op, Path: "volume", Err: f.Errno}
	}
	return errors.New(f.Text)
}

// follow calls progress, which may be nil, for each message, and returns the last one.
func follow(r io.Reader, progress func(bytes int64)) (last message) {
	d := json.NewDecoder(r)
	for {
		var m message
		if err := d.Decode(&m); err != nil {
			return last
		}
		if last = m; progress != nil {
			progress(m.Read)
		}
	}
}
