package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

func newApplyCommand(c *connector) *cobra.Command {
	var files *[]string
	var dryRun bool
	var w *waiting
	cmd := c.command(&cobra.Command{
		Use:   "apply -f <file>...",
		Short: "Create or change containers to match files",
		Long: "Create or change containers to match files. Absent fields get their defaults, except that an absent\n" +
			"install_script or power stays as it is. Applying the same file again changes nothing. Containers that\n" +
			"no file describes stay as they are.\n\n" + manifestHelp + "\n\n" +
			"Everything is validated by the daemon before anything is changed. For each container a line reports\n" +
			"created, configured or unchanged. A conflict with the current state, such as a port of another\n" +
			"container, does not keep the command from the others.",
		Example: "  berth apply -f survival.yaml --dry-run\n  berth apply -f survival.yaml -f lobby.yaml\n  berth apply -f containers/\n" +
			"  berth containers survival -o yaml | berth apply -f -",
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		list, err := readManifests(*files, cmd.InOrStdin())
		if err != nil {
			return err
		}
		a := &applier{cmd: cmd, d: d, list: list, changes: map[string]client.Changes{}, waiting: w}
		if dryRun {
			return a.each(a.preview)
		}
		if err := a.validate(); err != nil {
			return err
		}
		return errors.Join(a.each(a.apply), a.wait())
	})
	files, w = addFileFlag(cmd), addWaitFlags(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only print what would change")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "wait")
	return cmd
}

// applier applies manifests.
type applier struct {
	cmd     *cobra.Command
	d       *daemon
	list    []manifest
	changes map[string]client.Changes // by internal id, of the dry runs that succeeded

	waiting          *waiting
	running, stopped []string // ids that were applied, by their desired power
}

func (a *applier) ctx() context.Context { return a.cmd.Context() }

// each calls do for each manifest in turn, and adds its place to its error.
func (a *applier) each(do func(m manifest) error) error {
	byName := map[string]manifest{}
	for _, m := range a.list {
		byName[m.String()] = m
	}
	return a.d.each(a.ctx(), names(a.list, manifest.String), func(name string) error {
		if err := do(byName[name]); err != nil {
			return byName[name].fail(err)
		}
		return nil
	})
}

// validate makes a dry run of every manifest. A conflict is no error: it may be one
// with a container that an earlier manifest changes.
func (a *applier) validate() error {
	return a.each(func(m manifest) error {
		err := a.dryRun(m)
		if err != nil && codeOf(err) == exitConflict {
			return nil
		}
		return err
	})
}

func (a *applier) dryRun(m manifest) error {
	changes, err := a.d.Containers().DryRun(a.ctx(), m.spec)
	if err == nil {
		a.changes[m.spec.InternalID] = changes
	}
	return err
}

func (a *applier) apply(m manifest) error {
	id := m.spec.InternalID
	if _, known := a.changes[id]; !known {
		if err := a.dryRun(m); err != nil {
			return err
		}
	}
	c, err := a.d.Containers().Apply(a.ctx(), m.spec, client.ApplyOptions{})
	if err != nil {
		return err
	}
	if c.Power == v1.PowerOn {
		a.running = append(a.running, id)
	} else {
		a.stopped = append(a.stopped, id)
	}
	if a.waiting.enabled && !isText(a.cmd) {
		return nil // wait prints the container as it is then
	}
	return printDone(a.cmd, a.d.raw, id, "%s %s", m, result(a.changes[id]))
}

// wait waits until the applied containers are installed, and run if they should.
func (a *applier) wait() error {
	if !a.waiting.enabled {
		return nil
	}
	var failed error
	if len(a.stopped) > 0 {
		failed = a.waiting.wait(a.cmd, a.d, a.stopped, goal{"installed", []v1.Phase{v1.Ready, v1.Exit}})
	}
	if len(a.running) > 0 {
		failed = errors.Join(failed, a.waiting.wait(a.cmd, a.d, a.running, goalOf(client.Start)))
	}
	return failed
}

// preview prints what applying a manifest would change.
func (a *applier) preview(m manifest) error {
	if err := a.dryRun(m); err != nil {
		return err
	}
	changes := a.changes[m.spec.InternalID]
	if !isText(a.cmd) && format(a.cmd) != formatName {
		return printPlanned(a.cmd, m, changes)
	}
	return show(a.cmd, nil, []string{m.spec.InternalID}, func(t *table) {
		t.line(m.String() + " " + result(changes) + " (dry run)")
		for _, action := range changes.Actions {
			t.line("  " + action.Action + ": " + action.Reason)
		}
	})
}

// planned is what applying a manifest would change.
type planned struct {
	Container string `json:"container"`
	Source    string `json:"source"` // file and document
	Result    string `json:"result"` // created, configured or unchanged
	client.Changes
}

// printPlanned prints one line of JSON, or a YAML document.
func printPlanned(cmd *cobra.Command, m manifest, changes client.Changes) error {
	raw, err := json.Marshal(planned{m.spec.InternalID, m.source, result(changes), changes})
	if err != nil {
		return err
	}
	return printNext(cmd, raw)
}

// result returns what applying changes does, in the words of kubectl.
func result(c client.Changes) string {
	for _, action := range c.Actions {
		if action.Action == "create" {
			return "created"
		}
	}
	if c.Changed {
		return "configured"
	}
	return "unchanged"
}

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

// decodeSpec reads a container in YAML or JSON, which is YAML. It accepts and ignores
// the status fields, so that a container can be applied as it was printed.
func decodeSpec(text []byte) (client.ContainerSpec, error) {
	text, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return client.ContainerSpec{}, errors.New(config.YAMLError(err))
	}
	var c client.Container
	err = jsonv2.Unmarshal(text, &c, jsonv2.RejectUnknownMembers(true))
	var fault *jsonv2.SemanticError
	if errors.As(err, &fault) {
		err = errors.New(strings.TrimPrefix(fieldOf(fault)+": "+messageOf(fault), ": "))
	}
	return c.ContainerSpec, err
}

// element matches the index of a list in a path such as ports.1.port.
var element = regexp.MustCompile(`\.([0-9]+)`)

// fieldOf returns the field of an error, such as ports[1].port.
func fieldOf(fault *jsonv2.SemanticError) string {
	var path strings.Builder
	for token := range fault.JSONPointer.Tokens() {
		path.WriteString("." + token)
	}
	return strings.TrimPrefix(element.ReplaceAllString(path.String(), "[$1]"), ".")
}

// messageOf returns what is wrong with the field of an error.
func messageOf(fault *jsonv2.SemanticError) string {
	switch {
	case errors.Is(fault, jsonv2.ErrUnknownName):
		return "is not a field of a container"
	case fault.GoType == nil:
		return fault.Error()
	case fault.GoType == reflect.TypeFor[v1.Duration]():
		return "must be a duration such as 90s, 1h30m or 7d, or a number of seconds"
	case fault.GoType == reflect.TypeFor[time.Time]():
		return "must be a time such as 2006-01-02T15:04:05Z"
	}
	switch fault.GoType.Kind() {
	case reflect.String:
		if fault.JSONKind == '{' || fault.JSONKind == '[' {
			return "must be a single value"
		}
		return "must be a text: put it in quotes" // 1.10 is 1.1 by now, and 0123 is 83
	case reflect.Bool:
		return "must be true or false"
	case reflect.Float64:
		return "must be a number"
	case reflect.Slice:
		return "must be a list"
	case reflect.Struct, reflect.Map:
		return "must be a mapping"
	}
	return "must be a whole number"
}
