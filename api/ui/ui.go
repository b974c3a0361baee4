package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

// Policy is the Content-Security-Policy of the page: nothing inline, no other host, and
// no text of a tenant becomes HTML (require-trusted-types-for).
const Policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// index is the name of the only file that is no part of a version.
const index = "index.html"

// types are the media types of the files, by extension. Other files are not served.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// File is a file of the page, which callers must not change.
type File struct {
	Type  string // media type
	Plain []byte
	Gzip  []byte // Plain, compressed
}

// Library is a library of the page, from npm.
type Library struct {
	Name      string            `json:"name"`
	Version   string            `json:"version"`
	License   string            `json:"license"`   // SPDX identifier
	Integrity string            `json:"integrity"` // of the package: sha512- and base64
	Files     map[string]string `json:"files"`     // in assets/vendor: name and hex SHA-256
}

// Libraries returns the libraries of the page.
func Libraries() (list []Library, err error) {
	text, err := assets.ReadFile("assets/vendor/vendor.json")
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &list)
	return list, err
}

// Page is the operator's page. It is immutable.
type Page struct {
	version string
	files   map[string]File // by path below assets
}

// New returns the page that is embedded in the program.
func New() (*Page, error) { return load(assets) }

// load reads the page below assets of a file system.
func load(from fs.FS) (*Page, error) {
	p := &Page{files: map[string]File{}}
	sum := sha256.New()
	err := fs.WalkDir(from, "assets", func(name string, d fs.DirEntry, err error) error {
		kind, served := types[path.Ext(name)]
		if err != nil || d.IsDir() || !served {
			return err
		}
		text, err := fs.ReadFile(from, name)
		name = strings.TrimPrefix(name, "assets/")
		if path.Ext(name) == ".js" && !strings.HasPrefix(name, "vendor/") {
			text = withoutComments(text)
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text) // a hash never fails
		p.files[name] = File{Type: kind, Plain: text}
		return err
	})
	if err != nil {
		return nil, err
	}
	p.version = hex.EncodeToString(sum.Sum(nil))[:16]
	if err := p.fillIndex(); err != nil {
		return nil, fmt.Errorf("%s: %w", index, err)
	}
	return p, p.compress()
}

// withoutComments returns a script without the text of those lines that only hold a comment,
// a tenth of what the page sends. The lines stay, so browsers name the lines of the source.
func withoutComments(script []byte) []byte {
	out := make([]byte, 0, len(script))
	for line := range bytes.Lines(script) {
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("//")) {
			line = []byte("\n")
		}
		out = append(out, line...)
	}
	return out
}

// fillIndex replaces the template index.html by its result.
func (p *Page) fillIndex() error {
	file := p.files[index]
	t, err := template.New(index).Parse(string(file.Plain))
	if err != nil {
		return err
	}
	// Those of boot come first: they send requests while the others are loaded.
	modules := p.graph("boot.js", nil)
	modules = p.graph("main.js", modules)
	var out bytes.Buffer
	err = t.Execute(&out, struct {
		Version string
		Modules []string // which the browser loads at once, instead of one import after the other
	}{p.version, modules})
	file.Plain = out.Bytes()
	p.files[index] = file
	return err
}

// imported matches the path in an import.
var imported = regexp.MustCompile(`from\s*['"](\.[^'"]+)['"]`)

// graph adds the modules to known that a module needs, and itself, if they are there.
func (p *Page) graph(name string, known []string) []string {
	file, found := p.files[name]
	if !found || slices.Contains(known, name) {
		return known
	}
	known = append(known, name)
	for _, match := range imported.FindAllSubmatch(file.Plain, -1) {
		known = p.graph(path.Join(path.Dir(name), string(match[1])), known)
	}
	return known
}

// compress compresses each file. They share one writer, which has 800 KiB.
func (p *Page) compress() error {
	w, err := gzip.NewWriterLevel(nil, gzip.BestCompression)
	if err != nil {
		return err
	}
	for name, file := range p.files {
		var out bytes.Buffer
		w.Reset(&out)
		_, err := w.Write(file.Plain)
		if err := errors.Join(err, w.Close()); err != nil {
			return err
		}
		file.Gzip = out.Bytes()
		p.files[name] = file
	}
	return nil
}

// Version returns the hash of all files.
func (p *Page) Version() string { return p.version }

// Index returns the HTML document, which refers to the other files of its version.
func (p *Page) Index() File { return p.files[index] }

// File returns a file of a version by its path, such as vendor/preact.js. It reports
// whether this page has that file in that version.
func (p *Page) File(version, name string) (File, bool) {
	file, found := p.files[name]
	return file, found && version == p.version && name != index
}

// Size returns the bytes of all files, compressed.
func (p *Page) Size() (n int) {
	for _, file := range p.files {
		n += len(file.Gzip)
	}
	return n
}
