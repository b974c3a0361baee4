package node

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	v1 "berth/api/v1"
)

// entry is a file or folder as panels read it.
type entry struct {
	Name      string `json:"name"`
	Created   string `json:"created"`
	Modified  string `json:"modified"`
	Mode      string `json:"mode"`
	ModeBits  string `json:"mode_bits"`
	Size      int64  `json:"size"`
	Directory bool   `json:"directory"`
	File      bool   `json:"file"`
	Symlink   bool   `json:"symlink"`
	MIME      string `json:"mime"`
}

// entryOf returns an entry of berth's as panels read it.
func entryOf(f v1.FileEntry) entry {
	bits, _ := strconv.ParseUint(f.Mode, 8, 32)
	mode := fs.FileMode(bits) & fs.ModePerm
	at := func(seconds int64) string { return time.Unix(seconds, 0).Format(time.RFC3339) }
	e := entry{Name: plain(f.Name), Created: at(f.ChangedAt), Modified: at(f.ModifiedAt), Size: f.Size,
		Directory: f.Type == v1.TypeDirectory, File: f.Type != v1.TypeDirectory, Symlink: f.Symlink,
		ModeBits: strconv.FormatUint(uint64(mode), 8), MIME: mimeOf(f)}
	switch {
	case e.Directory:
		mode, e.MIME, e.Size = mode|fs.ModeDir, "inode/directory", 4096
	case e.Symlink:
		mode, e.MIME = mode|fs.ModeSymlink, "application/octet-stream"
	}
	e.Mode = mode.String()
	return e
}

// mimeOf returns the type of a file. Pages know by it what can be extracted, and what is no text; archives
// that berth does not know by their first bytes are known by name. A file whose type is unknown is text, so
// that it can be edited.
func mimeOf(f v1.FileEntry) string {
	switch strings.ToLower(path.Ext(f.Name)) {
	case ".tar":
		return "application/x-tar"
	case ".gz", ".tgz":
		return "application/gzip"
	case ".bz2", ".tbz2":
		return "application/x-bzip2"
	case ".xz", ".txz":
		return "application/x-xz"
	case ".zst":
		return "application/zstd"
	case ".7z":
		return "application/x-7z-compressed"
	case ".jar":
		return "application/jar"
	}
	return cmp.Or(f.Mime, "text/plain; charset=utf-8")
}

// listDirectory is GET /api/servers/:s/files/list-directory: folders first, as berth sorts them.
func (t tenant) listDirectory(c *call) error {
	found, err := t.Files().ListWithTypes(c.Context(), t.volume, inside(c.URL.Query().Get("directory")))
	if has(err, v1.PathNotFound) {
		return refuse(404, "The requested directory was not found on the server.")
	} else if err != nil {
		return err
	}
	list := []entry{}
	for _, f := range found {
		list = append(list, entryOf(f))
	}
	return c.answer(200, list)
}

// stat returns one entry.
func (t tenant) stat(ctx context.Context, name string) (v1.FileEntry, error) {
	folder, base := path.Split(name)
	list, err := t.Files().ListWithTypes(ctx, t.volume, strings.TrimSuffix(folder, "/"))
	if err != nil {
		return v1.FileEntry{}, err
	}
	if i := slices.IndexFunc(list, func(f v1.FileEntry) bool { return f.Name == base }); i >= 0 {
		return list[i], nil
	}
	return v1.FileEntry{}, errNotFound
}

// answerEntry answers with one entry.
func (t tenant) answerEntry(c *call, name string) error {
	f, err := t.stat(c.Context(), name)
	if err != nil {
		return err
	}
	return c.answer(200, entryOf(f))
}

// contents is GET /api/servers/:s/files/contents.
func (t tenant) contents(c *call) error {
	return t.send(c, inside(c.URL.Query().Get("file")), c.URL.Query().Get("download") != "")
}

// sniffed is how many bytes of a file determine its type.
const sniffed = 512

// send answers with the content of a file.
func (t tenant) send(c *call, name string, download bool) error {
	if name == "" {
		return errDirectory
	}
	content, err := t.Files().Download(c.Context(), t.volume, name)
	if err != nil {
		if f, e := t.stat(c.Context(), name); e == nil && v1.TypeDirectory == cmp.Or(f.TargetType, f.Type) {
			return errDirectory
		}
		return err
	}
	defer content.Close()
	head := make([]byte, sniffed)
	size, err := io.ReadFull(content, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	kind := http.DetectContentType(head[:size])
	c.w.Header().Set("X-Mime-Type", kind)
	c.w.Header().Set("Content-Type", kind)
	if download {
		c.attach(path.Base(plain(name)))
	}
	return t.n.stream(c, io.MultiReader(bytes.NewReader(head[:size]), content), content.Size)
}

// write is POST /api/servers/:s/files/write, whose body is the file.
func (t tenant) write(c *call) error {
	name := inside(c.URL.Query().Get("file"))
	switch {
	case c.ContentLength < 0:
		return &refusal{400, "Missing \"Content-Length\" header.", true}
	case name == "":
		return errDirectory
	}
	return c.done(204, t.upload(c, name, newUploadBody(c), c.ContentLength))
}

// selection is the body of a request about files below a folder.
type selection[F any] struct {
	Root  string
	Files []F
}

func (s *selection[F]) count() int { return len(s.Files) }

// maxNames bounds the files of one request.
const maxNames = 1000

// decodeFiles decodes a selection. One without files is refused with a sentence.
func (c *call) decodeFiles(into interface{ count() int }, none string) error {
	if err := c.decode(into); err != nil {
		return err
	}
	switch count := into.count(); {
	case count == 0:
		return refuse(422, "%s", none)
	case count > maxNames:
		return refuse(422, "At most %d files can be named in one request.", maxNames)
	}
	return nil
}

// rename is PUT /api/servers/:s/files/rename. Missing files are passed over.
func (t tenant) rename(c *call) error {
	var r selection[struct{ From, To string }]
	if err := c.decodeFiles(&r, "No files to move or rename were provided."); err != nil {
		return err
	}
	for _, f := range r.Files {
		err := t.Files().Rename(c.Context(), t.volume, inside(r.Root, f.From), inside(r.Root, f.To))
		switch {
		case has(err, v1.FileExists):
			return refuse(400, "Cannot move or rename file, destination already exists.")
		case err != nil && !has(err, v1.PathNotFound):
			return err
		}
	}
	return c.done(204, nil)
}

// deleteFiles is POST /api/servers/:s/files/delete.
func (t tenant) deleteFiles(c *call) error {
	var r selection[string]
	if err := c.decodeFiles(&r, "No files were specified for deletion."); err != nil {
		return err
	}
	var failed error
	for _, name := range r.Files {
		target, err := inside(r.Root, name), error(errNotFound) // the root of the volume stays
		if target != "" {
			err = t.Files().Delete(c.Context(), t.volume, target)
		}
		failed = cmp.Or(failed, err)
	}
	return c.done(204, failed)
}

// chmod is POST /api/servers/:s/files/chmod. Missing files are passed over.
func (t tenant) chmod(c *call) error {
	var r selection[struct{ File, Mode string }]
	if err := c.decodeFiles(&r, "No files to chmod were provided."); err != nil {
		return err
	}
	for _, f := range r.Files {
		bits, err := strconv.ParseUint(f.Mode, 8, 32)
		if err != nil || bits > 0o777 {
			return refuse(400, "Invalid file mode.")
		}
		err = t.Files().Chmod(c.Context(), t.volume, inside(r.Root, f.File), fmt.Sprintf("%04o", bits))
		if err != nil && !has(err, v1.PathNotFound) {
			return err
		}
	}
	return c.done(204, nil)
}

// createDirectory is POST /api/servers/:s/files/create-directory.
func (t tenant) createDirectory(c *call) error {
	var r struct{ Name, Path string }
	if err := c.decode(&r); err != nil {
		return err
	}
	folder := inside(r.Path, r.Name)
	if folder == "" {
		return c.done(204, nil)
	}
	err := t.Files().Mkdir(c.Context(), t.volume, folder)
	if has(err, v1.FileExists, v1.PathNotFound) {
		err = refuse(400, "Part of the path being created is not a directory (ENOTDIR).")
	}
	return c.done(204, err)
}

// copy is POST /api/servers/:s/files/copy: beside the file, with " copy" in its name.
func (t tenant) copy(c *call) error {
	var r struct{ Location string }
	if err := c.decode(&r); err != nil {
		return err
	}
	name := inside(r.Location)
	folder, base := path.Split(name)
	list, err := t.Files().List(c.Context(), t.volume, strings.TrimSuffix(folder, "/"))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(f v1.FileEntry) bool { return f.Name == base && f.Type != v1.TypeDirectory }) {
		return errNotFound
	}
	return c.done(204, t.Files().Copy(c.Context(), t.volume, name, folder+copyName(base, list)))
}

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
