package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadManifests(t *testing.T) {
	dir := writeManifests(t, map[string]string{"b.yml": "internal_id: b", "a.yaml": "internal_id: a1\n---\n---\ninternal_id: a2\n", "c.json": `{"internal_id":"c"}`})
	require.NoError(t, os.Mkdir(dir+"/d.yaml", 0o700))
	list, err := readManifests([]string{"-", dir}, strings.NewReader("internal_id: in"))
	require.NoError(t, err)
	require.Equal(t, []string{"container/in", "container/a1", "container/a2", "container/b", "container/c"}, names(list, manifest.String))
	require.Equal(t, dir+"/a.yaml: document 3", list[2].source)
	require.Equal(t, dir+"/b.yml", list[3].source)
}

// TestReadManifestsFaults expects every fault of all files in one error.
func TestReadManifestsFaults(t *testing.T) {
	dir := writeManifests(t, map[string]string{"a.yaml": "imgae: x\n---\nimage: z\n---\ninternal_id: twice", "b.yaml": "internal_id: twice", "c.yaml": "\tx"})
	_, err := readManifests([]string{dir}, nil)
	require.EqualError(t, err, dir+"/a.yaml: document 1: imgae: is not a field of a container\n"+
		dir+"/a.yaml: document 2: internal_id is required: it names the container\n"+
		dir+"/b.yaml: container/twice: is described in "+dir+"/a.yaml: document 3 too\n"+
		dir+"/c.yaml: found character that cannot start any token")
	large := writeFile(t, strings.Repeat("#", maxManifestFile+1))
	for path, want := range map[string]string{
		t.TempDir(): "the directory has no files *.yaml", "/does/not/exist": "no such file", large: "is larger than 16 MiB",
		writeFile(t, "# nothing"): "there is no container in it",
	} {
		_, err := readManifests([]string{path}, nil)
		require.ErrorContains(t, err, want)
	}
	_, err = readManifests([]string{"-", "-"}, strings.NewReader("internal_id: a"))
	require.ErrorContains(t, err, "standard input can be read once")
}
