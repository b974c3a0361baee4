package node

import (
	"cmp"
	"errors"
	"net/http"
	"path"
	"time"

	"berth/api/client"
	v1 "berth/api/v1"
)

// download is one that is not finished, as panels read it.
type download struct {
	Identifier string
	Progress   float64
}

// pulls is GET /api/servers/:s/files/pull.
func (t tenant) pulls(c *call) error {
	all, err := t.Files().Pulls(c.Context(), t.volume)
	if err != nil {
		return err
	}
	var list []download // null if there is none, as nodes answer
	for _, p := range all {
		if p.State.Final() {
			continue
		}
		d := download{Identifier: p.PullID}
		if p.Progress.Total != nil && *p.Progress.Total > 0 {
			d.Progress = float64(p.Progress.Bytes) / float64(*p.Progress.Total)
		}
		list = append(list, d)
	}
	return c.answer(200, map[string]any{"downloads": list})
}

// pull is POST /api/servers/:s/files/pull.
func (t tenant) pull(c *call) error {
	var r struct {
		URL        string `json:"url"`
		Root       string `json:"root"`
		Directory  string `json:"directory"`
		FileName   string `json:"file_name"`
		Foreground bool   `json:"foreground"`
	}
	if err := c.decode(&r); err != nil {
		return err
	}
	if t.n.config().API.DisableRemoteDownload {
		return refuse(400, "This functionality is not currently enabled on this instance.")
	}
	target := inside(cmp.Or(r.Root, r.Directory), r.FileName)
	if r.FileName == "" {
		target = path.Join(target, v1.PullRequest{URL: r.URL}.FileName())
	}
	id, err := t.Files().Pull(c.Context(), t.volume, v1.PullRequest{URL: r.URL, Path: target})
	if err != nil {
		return err
	}
	if !r.Foreground {
		return c.answer(http.StatusAccepted, map[string]string{"identifier": id})
	}
	if err := t.finished(c, id); err != nil {
		return err
	}
	return t.answerEntry(c, target)
}

// pullPause is the time between two observations of a download that a request waits for.
const pullPause = 200 * time.Millisecond

// finished waits for the end of a download.
func (t tenant) finished(c *call, id string) error {
	for {
		all, err := t.Files().Pulls(c.Context(), t.volume)
		if err != nil {
			return err
		}
		for _, p := range all {
			switch {
			case p.PullID != id:
			case p.State == v1.PullCompleted:
				return nil
			case p.State.Final():
				return errors.New(string(p.Message))
			}
		}
		if !pause(c.Context(), pullPause) {
			return c.Context().Err()
		}
	}
}

// cancelPull is DELETE /api/servers/:s/files/pull/:id.
func (t tenant) cancelPull(c *call) error {
	err := t.Files().CancelPull(c.Context(), t.volume, c.PathValue("pull"))
	if client.StatusOf(err)/100 == 4 {
		err = nil
	}
	return c.done(204, err)
}
