package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestArchives(t *testing.T) {
	h := newFileHarness(t)
	h.put("src/a", "a")
	h.put("src/b/c", "c")
	for _, format := range v1.Formats() {
		a := h.must("POST", h.at("compress"), object{"format": format, "output_name": "out", "path": "src"})
		require.Equal(t, "src/out."+format, a.json["archive_path"])
		require.Positive(t, a.json["size"])
		h.refuse(409, "File already exists at path: src/out."+format, "POST", h.at("compress"),
			object{"format": format, "output_name": "out", "path": "src"})
		a = h.must("POST", h.at("decompress"), object{"archive_path": "src/out." + format, "destination": "to/" + format})
		require.Equal(t, "to/"+format, a.json["destination"])
		require.Equal(t, "c", h.get("to/"+format+"/b/c"))
		require.NoError(t, os.Remove(filepath.Join(h.dir, "src/out."+format)))
	}
	a := h.must("POST", h.at("compress"), object{"output_name": "some", "paths": []string{"src/b", "src/a"}})
	require.Equal(t, "some.tar.gz", a.json["archive_path"])
	h.refuse(400, "format: must be one of zip, tar, tar.gz, tar.bz2", "POST", h.at("compress"), object{"output_name": "x", "format": "rar"})
	h.refuse(400, "output_name: is required", "POST", h.at("compress"), object{})
	h.refuse(400, "destination: is required", "POST", h.at("decompress"), object{"archive_path": "a"})
	h.refuse(404, "Path not found: none", "POST", h.at("decompress"), object{"archive_path": "none", "destination": "x"})
	require.Equal(t, "invalid_archive", h.call("POST", h.at("decompress"),
		object{"archive_path": "src/a", "destination": "x"}).header.Get("X-Error-Code"))
}
