package node

import (
	"cmp"
	"errors"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"berth/api/client"
	v1 "berth/api/v1"
)

// The bounds of a search: its results, and the folders that are listed for the modes that results lack.
const (
	shortest   = 3 // characters of a pattern
	maxFound   = 500
	maxFolders = 50
)

// search is GET /api/servers/:s/files/search. The names are paths from its folder.
func (t tenant) search(c *call) error {
	pattern := c.URL.Query().Get("pattern")
	if utf8.RuneCountInString(pattern) < shortest {
		return refuse(400, "Pattern must be at least 3 characters long")
	}
	folder := inside(c.URL.Query().Get("directory"))
	found, err := t.Files().SearchWithTypes(c.Context(), t.volume, folder, pattern)
	if err != nil {
		return err
	}
	list, folders, modes := []entry{}, map[string]bool{}, map[string]string{}
	for _, f := range found.Files {
		name := strings.TrimPrefix(strings.TrimPrefix(f.Path, folder), "/")
		if len(list) == maxFound || hidden(name) {
			continue
		}
		if dir := path.Dir(f.Path); !folders[dir] && len(folders) < maxFolders {
			folders[dir] = true
			entries, _ := t.Files().List(c.Context(), t.volume, strings.TrimPrefix(dir, ".")) // it may be gone
			for _, e := range entries {
				modes[path.Join(dir, e.Name)] = e.Mode
			}
		}
		list = append(list, entryOf(v1.FileEntry{Name: name, Type: f.Type, Size: f.Size, Mime: f.Mime,
			Mode: cmp.Or(modes[f.Path], "0644"), ModifiedAt: f.ModifiedAt, ChangedAt: f.ChangedAt}))
	}
	return c.answer(200, list)
}

// hidden reports whether a path is in a folder that a search does not show.
func hidden(name string) bool {
	for _, folder := range []string{"node_modules", ".wine", ".git", "appcache", "depotcache", "vendor"} {
		if strings.Contains("/"+name, "/"+folder+"/") {
			return true
		}
	}
	return false
}

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
