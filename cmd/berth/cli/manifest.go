package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"berth/api/client"
	"berth/cmd/berth/config"
)

// The bounds of the files that describe containers.
const (
	maxManifestFile = 16 << 20 // bytes
	maxManifests    = 10_000   // documents of all files
)

const manifestHelp = `-f names a file in YAML or JSON, a directory, whose files *.yaml, *.yml and *.json are read in the
order of their names, or - for standard input. It can be repeated, and a file can contain several
documents, each with the fields of POST /containers.`

// manifest is a container as a file describes it.
type manifest struct {
	source string // the file; of several documents also the number
	spec   client.ContainerSpec
}

// String returns the container's name in results.
func (m manifest) String() string { return containerPrefix + m.spec.InternalID }

// fail adds the place of the manifest to an error.
func (m manifest) fail(err error) error { return fmt.Errorf("%s: %s: %w", m.source, m, err) }

// addFileFlag adds -f to a command.
func addFileFlag(cmd *cobra.Command) *[]string {
	files := cmd.Flags().StringArrayP("file", "f", nil, "`path` of a file or directory, or - for standard input; can be repeated")
	_ = cmd.MarkFlagRequired("file") // the flag exists
	return files
}

// readManifests reads the documents of files and directories. Its error names every
// fault of all of them, and each container may be described once.
func readManifests(paths []string, stdin io.Reader) ([]manifest, error) {
	var all []manifest
	var faults []error
	seen := map[string]string{}
	files, err := manifestFiles(paths)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		list, err := readManifestFile(file, stdin)
		faults = append(faults, err)
		for _, m := range list {
			if first, again := seen[m.spec.InternalID]; again {
				faults = append(faults, m.fail(errors.New("is described in "+first+" too")))
			}
			seen[m.spec.InternalID] = m.source
		}
		if all = append(all, list...); len(all) > maxManifests {
			return nil, fmt.Errorf("%s: there are more than %d documents", file, maxManifests)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: there is no container in it", files[0])
	}
	return all, nil
}

// manifestFiles returns the files of the paths that -f names.
func manifestFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		if path == "-" && slices.Contains(files, path) {
			return nil, withCode(exitUsage, errors.New("standard input can be read once: name - once"))
		}
		info, err := os.Stat(path)
		if path == "-" || err == nil && !info.IsDir() {
			files = append(files, path)
			continue
		}
		if err != nil {
			return nil, err
		}
		entries, err := os.ReadDir(path) // sorted
		if err != nil {
			return nil, err
		}
		before := len(files)
		for _, e := range entries {
			if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) && !e.IsDir() {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
		if len(files) == before {
			return nil, fmt.Errorf("%s: the directory has no files *.yaml, *.yml or *.json", path)
		}
	}
	return files, nil
}

// readManifestFile reads the documents of one file.
func readManifestFile(file string, stdin io.Reader) (list []manifest, err error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		stdin = f
	}
	text, err := io.ReadAll(io.LimitReader(stdin, maxManifestFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(text) > maxManifestFile {
		return nil, fmt.Errorf("%s: is larger than %d MiB", file, maxManifestFile>>20)
	}
	documents := config.Documents(text)
	var faults []error
	for _, document := range documents {
		m := manifest{source: file}
		if len(documents) > 1 {
			m.source = fmt.Sprintf("%s: document %d", file, document.Number)
		}
		if m.spec, err = decodeSpec(document.Text); err == nil && m.spec.InternalID == "" {
			err = errors.New("internal_id is required: it names the container")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", m.source, err))
			continue
		}
		list = append(list, m)
	}
	return list, errors.Join(faults...)
}
