// Package eggs has 361 eggs with what an import must give for each. Their structure is that of
// eggs in use; names, texts and install scripts are ours. manifest.json describes eggs in the
// wild, extra.json shapes that were made by hand.
package eggs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed set.tar.gz
var archive []byte

// Egg is an egg of the set.
type Egg struct {
	ID     string   `json:"id"`
	File   string   `json:"file"`
	About  string   `json:"about"`
	Genre  string   `json:"genre"`
	Traits []string `json:"traits"`
	Expect Expect   `json:"expect"`

	Content []byte `json:"-"`
}

// Has reports whether an egg has a trait.
func (e Egg) Has(trait string) bool { return slices.Contains(e.Traits, trait) }

// Expect is what an import must give, for the port 127.0.0.1:25565 and 1024 MiB.
type Expect struct {
	Refused  bool   `json:"refused"`
	Image    string `json:"image"`
	Images   int    `json:"images"`
	Startup  string `json:"startup"`
	Expanded string `json:"startup_expanded"`

	Install struct {
		Image      string `json:"image"`
		Entrypoint string `json:"entrypoint"`
	} `json:"install"`
	Done         []string `json:"done"`
	StartPattern *string  `json:"start_pattern"`
	Stop         struct {
		Kind    string `json:"kind"` // command, interrupt, kill, unknown, signal or none
		Command string `json:"command"`
		Signal  string `json:"signal"`
	} `json:"stop"`
	Env         map[string]string `json:"env"`
	NeedsValues []string          `json:"needs_values"`
	Breaks      map[string]string `json:"default_against_rules"`
	Denied      []string          `json:"denylist"`
	Files       []File            `json:"config_files"`
}

// File is a configuration file.
type File struct {
	Path   string `json:"path"`
	Parser string `json:"parser"`
	Create *bool  `json:"create"`
	Edits  []struct {
		Key   string `json:"key"`
		If    string `json:"if"`
		Value any    `json:"value"`
	} `json:"edits"`
}

// Set returns the 361 eggs in the wild, and those made by hand.
func Set(t testing.TB) (wild, extra []Egg) {
	t.Helper()
	files := unpack(t)
	var manifest struct {
		Eggs []Egg `json:"eggs"`
		List []Egg `json:"list"`
	}
	require.NoError(t, json.Unmarshal(files["manifest.json"], &manifest))
	require.NoError(t, json.Unmarshal(files["extra.json"], &manifest))
	for _, all := range [][]Egg{manifest.Eggs, manifest.List} {
		for i := range all {
			all[i].Content = files[all[i].File]
			require.NotEmpty(t, all[i].Content, all[i].File)
		}
	}
	return manifest.Eggs, manifest.List
}

func unpack(t testing.TB) map[string][]byte {
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	require.NoError(t, err)
	files := map[string][]byte{}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		files[h.Name], err = io.ReadAll(r)
		require.NoError(t, err)
	}
}
