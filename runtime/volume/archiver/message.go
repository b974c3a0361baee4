package archiver

import (
	"errors"
	"io/fs"
	"syscall"

	v1 "berth/api/v1"
)

// message is what the process sends while it writes an archive. The daemon answers one
// whose Written is larger than before with that number: so many bytes were allowed.
type message struct {
	Read    int64        `json:"read"`             // bytes of files that were read so far
	Written int64        `json:"written"`          // bytes of the archive that were written so far
	Result  *v1.Snapshot `json:"result,omitempty"` // only in the last message, if the archive is complete
	Error   *failure     `json:"error,omitempty"`  // only in the last message, if it is not
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
