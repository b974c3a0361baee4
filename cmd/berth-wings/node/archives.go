package node

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "berth/api/v1"
)

// formatOf returns berth's format for an extension that a panel asks for. What berth does not write is
// tar.gz, as nodes do with extensions that they do not know.
func formatOf(extension string) string {
	switch extension = strings.TrimPrefix(strings.ToLower(extension), "."); extension {
	case "tbz2":
		return "tar.bz2"
	case "zip", "tar.bz2":
		return extension
	}
	return "tar.gz"
}

// compress is POST /api/servers/:s/files/compress.
func (t tenant) compress(c *call) error {
	var r struct {
		selection[string]
		Name, Extension string
	}
	if err := c.decodeFiles(&r, "No files were passed through to be compressed."); err != nil {
		return err
	}
	folder := inside(r.Root)
	list, err := t.Files().List(c.Context(), t.volume, folder)
	if err != nil {
		return err
	}
	var paths []string
	for _, name := range r.Files { // pages name what is selected, and some of it may be gone
		first, _, _ := strings.Cut(inside(name), "/")
		if first != "" && taken(list, first) {
			paths = append(paths, inside(name))
		}
	}
	if len(paths) == 0 {
		return errNotFound
	}
	format, name := formatOf(r.Extension), "archive-"+time.Now().Format("2006-01-02T150405Z0700")
	if r.Name != "" {
		name = inside(path.Base(r.Name))
	}
	if taken(list, name+"."+format) {
		name = strings.TrimSuffix(copyName(name+"."+format, list), "."+format)
	}
	made, err := t.Files().Compress(c.Context(), t.volume, v1.Compression{Format: format, Folder: folder, Output: name, Paths: paths})
	if has(err, v1.SizeLimit, v1.DiskFull) {
		return &refusal{409, errNoSpace.text, true}
	} else if err != nil {
		return err
	}
	return t.answerEntry(c, made.Path)
}

// decompress is POST /api/servers/:s/files/decompress.
func (t tenant) decompress(c *call) error {
	var r struct{ Root, File string }
	if err := c.decode(&r); err != nil {
		return err
	}
	archive := v1.Decompression{Archive: inside(r.Root, r.File), Destination: cmp.Or(inside(r.Root), ".")}
	_, err := t.Files().Decompress(c.Context(), t.volume, archive)
	if has(err, v1.InvalidArchive) {
		err = refuse(400, "The archive provided is in a format Wings does not understand.")
	}
	return c.done(204, err)
}

// maxCopies is how many names a copy tries before it takes one with the date.
const maxCopies = 50

// copyName returns a name for a copy that no entry of the folder has.
func copyName(base string, list []v1.FileEntry) string {
	ext := path.Ext(base)
	if strings.HasSuffix(base, ".tar"+ext) {
		ext = ".tar" + ext
	}
	stem := strings.TrimSuffix(base, ext) + " copy"
	name := stem + ext
	for i := 1; taken(list, name) && i <= maxCopies; i++ {
		name = stem + " " + strconv.Itoa(i) + ext
	}
	if taken(list, name) {
		name = stem + time.Now().UTC().Format(".2006-01-02T150405Z") + ext
	}
	return name
}

// taken reports whether an entry of a folder has a name.
func taken(list []v1.FileEntry, name string) bool {
	return slices.ContainsFunc(list, func(f v1.FileEntry) bool { return f.Name == name })
}
