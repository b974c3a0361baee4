package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

func newApplyCommand(c *connector) *cobra.Command {
	var files *[]string
	var dryRun, nextStart bool
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
		a := &applier{cmd: cmd, d: d, list: list, nextStart: nextStart, changes: map[string]v1.Changes{}, waiting: w}
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
	cmd.Flags().BoolVar(&nextStart, "at-next-start", false, "leave runs alone: what needs a new container is changed at the next start")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "wait")
	return cmd
}

// applier applies manifests.
type applier struct {
	cmd  *cobra.Command
	d    *daemon
	list []manifest

	nextStart bool
	changes   map[string]v1.Changes // by internal id, of the dry runs that succeeded

	waiting          *waiting
	running, stopped []string // ids that were applied, by their desired power
}

// path returns the path of a PUT with the parameters of its query.
func (a *applier) path(m manifest, query ...string) string {
	if a.nextStart {
		query = append(query, "apply=next-start")
	}
	if len(query) == 0 {
		return m.path()
	}
	return m.path() + "?" + strings.Join(query, "&")
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
	var changes v1.Changes
	err := a.d.Call(a.ctx(), http.MethodPut, a.path(m, "dry_run=true"), m.spec, &changes)
	if err != nil {
		return err
	}
	more, err := a.scheduleChanges(m)
	changes.Actions = append(changes.Actions, more...)
	changes.Changed = changes.Changed || len(more) > 0
	a.changes[m.id] = changes
	return err
}

func (a *applier) apply(m manifest) error {
	if _, known := a.changes[m.id]; !known {
		if err := a.dryRun(m); err != nil {
			return err
		}
	}
	var c v1.ContainerView
	if err := a.d.Call(a.ctx(), http.MethodPut, a.path(m), m.spec, &c); err != nil {
		return err
	}
	raw := a.d.raw // the container
	if err := a.applySchedules(m); err != nil {
		return err
	}
	if c.Power == v1.PowerOn {
		a.running = append(a.running, m.id)
	} else {
		a.stopped = append(a.stopped, m.id)
	}
	if a.waiting.enabled && !isText(a.cmd) {
		return nil // wait prints the container as it is then
	}
	return printDone(a.cmd, raw, m.id, "%s %s", m, result(a.changes[m.id]))
}

// wait waits until the applied containers are installed, and run if they should.
func (a *applier) wait() error {
	if !a.waiting.enabled {
		return nil
	}
	var failed error
	if len(a.stopped) > 0 {
		failed = a.waiting.wait(a.cmd, a.d, a.stopped, goal{name: "installed", states: []v1.Phase{v1.Ready, v1.Exit}})
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
	changes := a.changes[m.id]
	if !isText(a.cmd) && format(a.cmd) != formatName {
		return printPlanned(a.cmd, m, changes)
	}
	return show(a.cmd, nil, []string{m.id}, func(t *table) {
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
	v1.Changes
}

// printPlanned prints one line of JSON, or a YAML document.
func printPlanned(cmd *cobra.Command, m manifest, changes v1.Changes) error {
	raw, err := json.Marshal(planned{m.id, m.source, result(changes), changes})
	if err != nil {
		return err
	}
	return printNext(cmd, raw)
}

// result returns what applying changes does, in the words of kubectl.
func result(c v1.Changes) string {
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

const manifestHelp = `-f names a file in YAML or JSON, a directory, whose files *.yaml, *.yml and *.json are read in the
order of their names, or - for standard input. It can be repeated, and a file can contain several
documents, each with the fields of POST /containers, and with schedules, which are by their names what
PUT /containers/{id}/schedules/{name} takes: the container then has these and no others. A text that YAML reads as a number, true or
false needs quotes.`

// manifest is a container as a file describes it.
type manifest struct {
	source string // the file; of several documents also the number
	id     string
	spec   json.RawMessage // as the file has it: the daemon checks it, and names what is wrong

	schedules map[string]v1.ScheduleSpec // nil: the file has none, and they stay
}

// String returns the container's name in results.
func (m manifest) String() string { return containerPrefix + m.id }

func (m manifest) path() string { return "/containers/" + url.PathEscape(m.id) }

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
			if first, again := seen[m.id]; again {
				faults = append(faults, m.fail(errors.New("is described in "+first+" too")))
			}
			seen[m.id] = m.source
		}
		all = append(all, list...)
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
	text, err := readInput(file, stdin)
	if err != nil {
		return nil, err
	}
	documents := config.Documents(text)
	var faults []error
	for _, document := range documents {
		m := manifest{source: file}
		if len(documents) > 1 {
			m.source = fmt.Sprintf("%s: document %d", file, document.Number)
		}
		m.id, m.spec, err = readManifest(document.Text)
		if err == nil {
			err = m.takeSchedules()
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", m.source, err))
			continue
		}
		list = append(list, m)
	}
	return list, errors.Join(faults...)
}

// readManifest returns the id of the container that a document describes, and the document in JSON.
func readManifest(document []byte) (id string, spec json.RawMessage, err error) {
	spec, err = yaml.YAMLToJSONStrict(document)
	if err != nil {
		return "", nil, errors.New(config.YAMLError(err))
	}
	var named struct {
		ID string `json:"internal_id"`
	}
	if json.Unmarshal(spec, &named) != nil || named.ID == "" {
		return "", nil, errors.New("internal_id is required: it is the text that names the container")
	}
	return named.ID, spec, nil
}
