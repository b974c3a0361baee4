package node

import (
	"errors"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"path"
	"time"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/panel"
)

// downloadFile is GET /download/file: a browser follows a link that the panel has signed.
func (n *Node) downloadFile(c *call) error {
	s, token, err := n.link(c, scopeDownload)
	if err != nil {
		return err
	}
	t, err := n.tenant(c.Context(), s)
	if err != nil {
		return err
	}
	return t.send(c, inside(token.File), true)
}

// The bounds of one upload.
const (
	maxParts      = 100      // files
	maxPartHeader = 64 << 10 // bytes of the headers of a file
)

// uploadFile is POST /upload/file. A file that is too large is not written; those before it are.
func (n *Node) uploadFile(c *call) error {
	s, token, err := n.link(c, scopeUpload)
	if err != nil {
		return err
	}
	t, err := n.tenant(c.Context(), s)
	if err != nil {
		return err
	}
	body := newUploadBody(c)
	c.Body = body
	parts, err := c.MultipartReader()
	if err != nil {
		return refuse(400, "Failed to get multipart form data from request.")
	}
	directory, files := c.URL.Query().Get("directory"), 0
	for seen := 0; ; seen++ {
		body.limit(maxPartHeader)
		part, err := parts.NextPart()
		body.limit(math.MaxInt64)
		switch {
		case errors.Is(err, io.EOF) && files == 0:
			return refuse(400, "No files were found on the request body.")
		case errors.Is(err, io.EOF):
			return c.done(http.StatusOK, nil)
		case err != nil:
			return refuse(400, "Failed to get multipart form data from request.")
		case seen >= maxParts:
			return refuse(400, "At most %d files can be uploaded in one request.", maxParts)
		case part.FormName() != "files" || part.FileName() == "":
			_, _ = io.Copy(io.Discard, part) // the next part has the error
			continue
		}
		if err := t.uploadPart(c, inside(directory, part.FileName()), part); err != nil {
			return err
		}
		files++
		n.record(n.address(c.Request), token.User, t.s, panel.Activity{Event: "server:file.uploaded",
			Metadata: map[string]any{"file": part.FileName(), "directory": path.Clean("/" + directory)}})
	}
}

// uploadPart writes one file of an upload.
func (t tenant) uploadPart(c *call, name string, part *multipart.Part) error {
	limit := t.n.config().API.UploadLimit
	err := t.upload(c, name, http.MaxBytesReader(nil, part, limit<<20), 0)
	if errors.As(err, new(*http.MaxBytesError)) {
		return refuse(400, "File %s is larger than the maximum file upload size of %d MB.", part.FileName(), limit)
	}
	return err
}

// upload writes a file of size bytes, or of an unknown number if size is 0.
func (t tenant) upload(c *call, name string, content io.Reader, size int64) error {
	_, err := t.Files().Upload(c.Context(), t.volume, name, content, client.UploadOptions{Size: size})
	if has(err, v1.FileExists) {
		return errDirectory
	}
	return err
}

var errTooLarge = errors.New("the file is too large")

// silence is how long a browser may send or take nothing of a file.
const silence = time.Minute

// uploadBody is the body of an upload: the browser must send something within a time, and not too much between the contents
// of two files.
type uploadBody struct {
	io.ReadCloser
	c    *call
	conn *http.ResponseController
	left int64
}

func newUploadBody(c *call) *uploadBody {
	return &uploadBody{c.Body, c, http.NewResponseController(c.w), math.MaxInt64}
}

func (u *uploadBody) limit(bytes int64) { u.left = bytes }

func (u *uploadBody) Read(p []byte) (int, error) {
	if u.left <= 0 {
		return 0, errTooLarge
	}
	if err := u.conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	n, err := u.ReadCloser.Read(p[:min(int64(len(p)), u.left)])
	u.left -= int64(n)
	if denied := u.c.checkAccess(); denied != nil { // the bytes that were just read are not written
		return 0, denied
	}
	return n, err
}

// steadyWriter writes to a browser that must take something within a time.
type steadyWriter struct {
	c    *call
	conn *http.ResponseController
}

func (s *steadyWriter) Write(p []byte) (int, error) {
	if err := s.conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	if err := s.c.checkAccess(); err != nil {
		return 0, err
	}
	return s.c.w.Write(p)
}
