package egg

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The bounds of the lists of an egg.
const (
	maxVariables = 500
	maxChoices   = 200 // images, startup commands
	maxFiles     = 100
)

// choice is one of several images or startup commands.
type choice struct{ name, value string }

// egg is an egg as a file has it, of any version.
type egg struct {
	name, author, description, uuid string

	images   []choice // the first is the default
	startups []choice // the first is the default
	stop     string
	done     []string

	script, container, entrypoint string

	variables        []variable
	files            []configFile
	features, tags   []string
	denied           []string
	nameless, reused []string // variables that cannot be in an environment, and names that several have
}

// configFile is a file of config.files.
type configFile struct {
	path, parser string
	create       bool
	find         value
}

// versions are those of meta.version that are known.
func versions() []string { return []string{"PTDL_v1", "PTDL_v2", "PLCN_v1", "PLCN_v2", "PLCN_v3"} }

// read returns the egg that a file has.
func read(content []byte) (e egg, err error) {
	root, err := parse(content)
	if err != nil {
		return e, err
	}
	version := root.path("meta", "version").text
	if !slices.Contains(versions(), version) {
		return e, fmt.Errorf("meta.version: %s is not one of %s", quoted(version), strings.Join(versions(), ", "))
	}
	e.name, e.author, e.uuid = root.get("name").text, root.get("author").text, root.get("uuid").text
	e.description = root.get("description").text
	e.features, e.tags = root.get("features").texts(), root.get("tags").texts()
	e.denied = slices.DeleteFunc(root.get("file_denylist").texts(), func(s string) bool { return strings.TrimSpace(s) == "" })
	e.stop = root.path("config", "stop").text
	install := root.path("scripts", "installation")
	e.script = strings.ReplaceAll(install.get("script").text, "\r\n", "\n")
	e.container = strings.TrimSpace(install.get("container").text)
	e.entrypoint = path.Base(strings.TrimSpace(install.get("entrypoint").text))
	for _, part := range []func(value) error{e.readImages, e.readStartups, e.readConfig, e.readVariables} {
		if err := part(root); err != nil {
			return e, err
		}
	}
	return e, nil
}

// readImages reads the images. image is an icon in later versions, and the image of a
// container in the first.
func (e *egg) readImages(root value) error {
	images := root.get("docker_images")
	if root.path("meta", "version").text == "PTDL_v1" {
		for _, name := range []string{"image", "images"} {
			if v := root.get(name); !v.nothing() {
				images = v
			}
		}
	}
	e.images = choices(images)
	for i := range e.images {
		c := &e.images[i]
		if c.value = strings.TrimSpace(c.value); c.value == "" {
			return fmt.Errorf("docker_images: %s has no image", quoted(c.name))
		}
		if images.kind != mapping {
			c.name = c.value
		}
	}
	switch {
	case len(e.images) == 0:
		return fmt.Errorf("docker_images: the egg names no image")
	case len(e.images) > maxChoices:
		return fmt.Errorf("docker_images: must be at most %d", maxChoices)
	}
	return nil
}

func (e *egg) readStartups(root value) error {
	if e.startups = choices(root.get("startup_commands")); len(e.startups) == 0 {
		e.startups = []choice{{"Default", root.get("startup").text}}
	}
	if len(e.startups) > maxChoices {
		return fmt.Errorf("startup_commands: must be at most %d", maxChoices)
	}
	return nil
}

// choices returns the texts of a map with their names, or those of a list.
func choices(v value) (all []choice) {
	for i, name := range v.names {
		all = append(all, choice{name, v.values[i].text})
	}
	if v.kind != mapping {
		for _, text := range v.texts() {
			all = append(all, choice{text, text})
		}
	}
	return all
}

// readConfig reads config, whose parts are maps, or texts with JSON in them.
func (e *egg) readConfig(root value) error {
	startup, err := inner(root, "startup")
	if err != nil {
		return err
	}
	e.done = startup.get("done").texts()
	files, err := inner(root, "files")
	if err != nil {
		return err
	}
	if len(files.names) > maxFiles {
		return fmt.Errorf("config.files: must be at most %d", maxFiles)
	}
	for i, name := range files.names {
		f := files.values[i]
		if f.get("find").kind == null {
			continue
		}
		create := f.get("create_file")
		e.files = append(e.files, configFile{name, f.get("parser").text, create.kind == null ||
			create.text != "false" && create.text != "0", f.get("find")})
	}
	return nil
}

// inner returns a part of config. A text may have a name twice, as some eggs do: the last one
// counts, as in PHP.
func inner(root value, name string) (value, error) {
	v := root.path("config", name)
	if v.nothing() || v.kind == mapping {
		return v, nil
	}
	if v.kind != text {
		return v, fmt.Errorf("config.%s: must be a map, or a text with JSON in it", name)
	}
	parsed, err := parseJSON([]byte(v.text), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return v, fmt.Errorf("config.%s: %w", name, err)
	}
	if parsed.kind != mapping && !parsed.nothing() {
		return v, fmt.Errorf("config.%s: must have a map in it", name)
	}
	return parsed, nil
}

// quoted returns a text of an egg for a message.
func quoted(text string) string { return fmt.Sprintf("%q", clipped(text, 100)) }

// clipped returns at most size bytes of a text.
func clipped(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size], "") + "…"
}
