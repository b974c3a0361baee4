package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Job is what a download reports to, and which lets others go first.
type Job interface {
	// Progress is called with the bytes received and the announced total; -1 is unknown.
	Progress(bytes, total int64)
	// Over reports whether the download has had its turn and others wait.
	Over() bool
	// Next ends the turn, waits a moment, and reports whether the next turn has begun.
	Next(ctx context.Context) (begun bool, err error)
}

var errNoRange = errors.New("others had their turn, and the server cannot continue the download, or its file has changed: request it again")

// turn lets others go first if the turn is over: it closes the connection and requests
// the rest of the content in its next turn. It returns false while others have theirs.
func (c *content) turn() (own bool, err error) {
	switch {
	case c.paused:
	case !c.job.Over():
		return true, nil
	case c.validator() == "":
		return false, errNoRange
	default:
		c.paused = true
		c.response.Body.Close()
		c.stalled.Stop()
	}
	begun, err := c.job.Next(c.request.Context())
	if err != nil || !begun {
		return false, err
	}
	c.paused = false
	return true, c.resume()
}

// resume requests the rest of the content, if it is still the same.
func (c *content) resume() error {
	request := c.request.Clone(c.request.Context())
	request.Header.Set("Range", fmt.Sprintf("bytes=%d-", c.read))
	request.Header.Set("If-Range", c.validator())
	response, err := c.client.http.Do(request)
	if err != nil {
		return err
	}
	c.response, c.pace = response, pace{}
	c.stalled.Reset(c.client.stall)
	if response.StatusCode != http.StatusPartialContent || !strings.HasPrefix(response.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", c.read)) {
		return errNoRange
	}
	return nil
}

// validator returns what identifies the content that the first response began, empty if
// the server returns no ranges of it. A weak ETag does not identify bytes.
func (c *content) validator() string {
	header := c.first
	if header.Get("Accept-Ranges") == "none" {
		return ""
	}
	if tag := header.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return header.Get("Last-Modified")
}
