package server

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/openapitest"
	"berth/hack/test/pathtest"
)

// pathField is one path field of one endpoint. An empty path in a query is the root if
// emptyIsRoot is true.
type pathField struct {
	method, endpoint, name string
	body                   func(p string) object // nil: the field is in the URL
	emptyIsRoot            bool
	ours                   bool // two dots may stand in a name: the field is not one of the interface
}

var pathFields = []pathField{
	{"GET", "files", "path", nil, true, false},
	{"GET", "files/search", "path", nil, true, true},
	{"GET", "files/content", "path", nil, false, true},
	{"PUT", "files/content", "path", nil, false, true},
	{"DELETE", "files", "path", nil, false, true},
	{"POST", "files", "path", func(p string) object { return object{"path": p, "content": "x"} }, false, false},
	{"POST", "folders", "path", func(p string) object { return object{"path": p} }, false, false},
	{"POST", "copy", "source", func(p string) object { return object{"source": p, "destination": "d"} }, false, false},
	{"POST", "copy", "destination", func(p string) object { return object{"source": "dir/file", "destination": p} }, false, false},
	{"POST", "rename", "source", func(p string) object { return object{"source": p, "destination": "d"} }, false, true},
	{"POST", "rename", "destination", func(p string) object { return object{"source": "dir/file", "destination": p} }, false, true},
	{"POST", "chmod", "path", func(p string) object { return object{"path": p, "mode": "0777"} }, false, true},
	{"POST", "compress", "output_name", func(p string) object { return object{"output_name": p} }, false, false},
	{"POST", "compress", "path", func(p string) object { return object{"output_name": "d", "path": p} }, false, false},
	{"POST", "compress", "paths", func(p string) object { return object{"output_name": "d", "paths": []string{"a.tar", p}} }, false, false},
	{"POST", "decompress", "archive_path", func(p string) object { return object{"archive_path": p, "destination": "d"} }, false, false},
	{"GET", "archive", "path", nil, true, true},
	{"PUT", "archive", "path", nil, true, true},
	{"POST", "pull", "path", func(p string) object { return object{"url": "https://example.com/", "path": p} }, false, true},
	{"POST", "decompress", "destination", func(p string) object { return object{"archive_path": "a.tar", "destination": p} }, false, false},
}

func (f pathField) send(h *fileHarness, p string) answer {
	h.t.Helper()
	if f.body != nil {
		return h.call(f.method, h.at(f.endpoint), f.body(p))
	}
	if f.endpoint == "files/search" {
		return h.call(f.method, h.at(f.endpoint, "query", "secret", "path", p), nil)
	}
	if f.method+f.endpoint == "PUTarchive" {
		return h.do(request{method: f.method, path: h.at(f.endpoint, "path", p), body: archiveOf(h.t, "dir/file")})
	}
	return h.call(f.method, h.at(f.endpoint, "path", p), nil)
}

// archiveOf returns a tar with one file, which has the content of newPathHarness.
func archiveOf(t *testing.T, name string) string {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 4}))
	_, err := w.Write([]byte("mine"))
	require.NoError(t, errors.Join(err, w.Close()))
	return buf.String()
}

// newPathHarness returns a volume with a valid archive, and with links out of it. It
// returns the paths through the links.
func newPathHarness(t *testing.T) (h *fileHarness, through []string) {
	h = newFileHarness(t)
	h.put("dir/file", "mine")
	h.must("POST", h.at("compress"), object{"format": "tar", "output_name": "a"})
	through, _ = pathtest.Plant(t, h.dir)
	return h, through
}

// around returns everything in the volume and next to it, with mode and content.
func (h *fileHarness) around() map[string]string {
	h.t.Helper()
	all := map[string]string{}
	top := filepath.Join(h.dir, "../..")
	require.NoError(h.t, filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && d.Type().IsRegular() {
			var data []byte
			data, err = os.ReadFile(p)
			all[p] = string(data)
		}
		all[p] += " " + info.Mode().String()
		return err
	}))
	return all
}

// TestHostilePaths sends every hostile path in every path field of every endpoint:
// each is refused, and no file changes.
func TestHostilePaths(t *testing.T) {
	for _, f := range pathFields {
		t.Run(f.method+" "+f.endpoint+" "+f.name, func(t *testing.T) {
			h, through := newPathHarness(t)
			before := h.around()
			list := pathtest.Texts()
			if f.endpoint == "pull" { // links are refused when the content arrives
				h.settings.change(func(c *v1.Config) { c.Files.Pull = true })
			} else {
				list = append(list, through...)
			}
			if f.body == nil {
				list = append(list, pathtest.InvalidUTF8()...)
			}
			if !f.ours {
				list = append(list, pathtest.Dots()...)
			}
			for _, p := range list {
				a := f.send(h, p)
				if p == "" && f.emptyIsRoot {
					require.Equal(t, 200, a.status, a.raw)
					continue
				}
				require.Equal(t, 400, a.status, "%.60q: %s", p, a.raw)
				if len(p) > v1.MaxComponent {
					require.Contains(t, a.json["error"], " longer than ", "%.60q", p)
				} else {
					require.Equal(t, traversal, a.json["error"], "%.60q", p)
				}
				require.Equal(t, "invalid_path", a.header.Get("X-Error-Code"), "%.60q", p)
			}
			require.Empty(t, cmp.Diff(before, h.around()))
		})
	}
}

// TestAbsentPath: a path that is required and absent is named.
func TestAbsentPath(t *testing.T) {
	h, _ := newPathHarness(t)
	before := h.around()
	for _, f := range pathFields {
		if f.body == nil && !f.emptyIsRoot {
			h.refuse(400, "path: is required", f.method, h.at(f.endpoint), nil)
		}
	}
	require.Empty(t, cmp.Diff(before, h.around()))
}

// TestPathFieldsAreComplete compares the table with the OpenAPI document.
func TestPathFieldsAreComplete(t *testing.T) {
	tried, there := map[string]bool{}, map[string]bool{}
	for _, f := range pathFields {
		tried[f.method+" "+f.endpoint+" "+f.name] = true
	}
	isPath := map[string]bool{"path": true, "paths": true, "source": true, "destination": true, "archive_path": true, "output_name": true}
	const ofVolume = "/volumes/{volume}/"
	known := map[string]bool{"content": true, "mode": true, "format": true, "ignore": true, "mime": true, "encoding": true, "query": true, "token": true, "url": true, "checksum": true}
	files := openapitest.Document(t).Paths.Map()
	maps.DeleteFunc(files, func(path string, _ *openapi3.PathItem) bool {
		return !strings.HasPrefix(path, ofVolume) || strings.HasPrefix(path, ofVolume+"backup") // whose fields are no paths
	})
	for path, item := range files {
		endpoint := strings.TrimPrefix(path, ofVolume)
		for method, operation := range item.Operations() {
			names := fieldsOf(operation)
			names = slices.DeleteFunc(names, func(name string) bool { return known[name] })
			for _, name := range names {
				require.True(t, isPath[name], "%s %s has a field %s: is it a path?", method, path, name)
				there[method+" "+endpoint+" "+name] = true
			}
		}
	}
	require.Equal(t, there, tried)
}

// fieldsOf returns the names of the query parameters and JSON fields of an operation.
func fieldsOf(operation *openapi3.Operation) (names []string) {
	for _, p := range operation.Parameters {
		if p.Value.In == openapi3.ParameterInQuery {
			names = append(names, p.Value.Name)
		}
	}
	if operation.RequestBody == nil {
		return names
	}
	if media := operation.RequestBody.Value.Content.Get("application/json"); media != nil {
		for name := range media.Schema.Value.Properties {
			names = append(names, name)
		}
	}
	return names
}

// TestRootPath: "." is the root where a path names a folder. An absent or null path
// is the root where it is optional.
func TestRootPath(t *testing.T) {
	h, _ := newPathHarness(t)
	h.settings.change(func(c *v1.Config) { c.Files.Pull = true })
	h.must("GET", h.at("files", "path", "."), nil)
	h.must("GET", h.at("files/search", "query", "file", "path", "."), nil)
	h.must("POST", h.at("folders"), object{"path": "."})
	h.must("POST", h.at("decompress"), object{"archive_path": "a.tar", "destination": "."})
	require.Equal(t, 200, h.do(request{method: "PUT", path: h.at("archive", "path", "."), body: archiveOf(t, "dir/file")}).status)
	for _, body := range []object{
		{}, {"path": "."}, {"path": nil}, {"paths": nil}, {"paths": []string{}}, {"paths": []string{"."}},
	} {
		body["output_name"] = "made"
		a := h.must("POST", h.at("compress"), body)
		require.Equal(t, "made.tar.gz", a.json["archive_path"], body)
		h.must("DELETE", h.at("files", "path", "made.tar.gz"), nil)
	}
	before := h.around()
	for _, f := range pathFields {
		switch f.method + " " + f.endpoint + " " + f.name {
		case "GET files path", "GET files/search path", "POST folders path", "POST compress path", "POST compress paths",
			"POST decompress destination", "GET archive path", "PUT archive path":
			continue
		case "POST copy source":
			h.refuse(400, "Cannot copy a folder into itself", "POST", h.at("copy"), f.body("."))
			continue
		}
		for _, p := range []string{".", "./", "./."} {
			a := f.send(h, p)
			require.Equal(t, 400, a.status, "%s %s %s of %s: %s", f.method, f.endpoint, f.name, p, a.raw)
			require.Equal(t, traversal, a.json["error"])
		}
	}
	require.Empty(t, cmp.Diff(before, h.around()))
}

// TestNamesOfFiles: a name with two dots, and one that is no valid UTF-8, can be read, changed and
// deleted. The name of a folder is not that of a new file.
func TestNamesOfFiles(t *testing.T) {
	h := newFileHarness(t)
	for name, shown := range map[string]string{"[...slug].tsx": "[...slug].tsx", "\xc4\xe3\n": `\xc4\xe3\x0a`} {
		h.put("pages/"+name, "content")
		list := h.must("GET", h.at("files", "path", "pages"), nil).json["files"].([]any)
		require.Equal(t, shown, list[0].(object)["name"])
		p := "pages/" + shown
		require.Equal(t, "content", string(h.must("GET", h.at("files/content", "path", p), nil).raw))
		a := h.must("PUT", h.at("files/content", "path", p), "new")
		require.Equal(t, p, a.json["path"])
		h.must("POST", h.at("chmod"), object{"path": p, "mode": "0600"})
		h.must("POST", h.at("rename"), object{"source": p, "destination": "renamed"})
		h.must("POST", h.at("rename"), object{"source": "renamed", "destination": p})
		require.NotEmpty(t, h.get("pages/"+name))
		h.must("DELETE", h.at("files", "path", p), nil)
		h.refuse(404, "Path not found: "+p, "DELETE", h.at("files", "path", p), nil)
	}
	h.refuse(400, "path: names a folder: append the name of the file", "PUT", h.at("files/content", "path", "pages/"), nil)
}
