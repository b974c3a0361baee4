package egg

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	v1 "berth/api/v1"
)

// The users of a server and of its installer: most scripts need root.
const (
	defaultUser   = "988:988"
	installerUser = "root"
)

// The grace periods of a stop.
const (
	commandTimeout   = v1.Duration(10 * time.Minute)
	interruptTimeout = v1.Duration(time.Minute)
)

// importer builds the spec of one container.
type importer struct {
	egg     egg
	request v1.EggRequest
	notes   []string
	env     map[string]string // the values of the variables
	names   map[string]bool   // of all variables that config_files and the server can have
	spec    v1.ContainerSpec
}

// Import returns the container that a request describes. A value that breaks a rule is reported
// with its variable. Its error is an InvalidRequest: an egg that cannot be read, or a choice that
// it does not have.
func Import(r v1.EggRequest) (v1.EggImport, error) {
	e, err := read([]byte(r.Egg))
	if err != nil {
		return v1.EggImport{}, v1.Errorf(v1.InvalidRequest, "egg: %s", err)
	}
	i := &importer{egg: e, request: r, env: map[string]string{}, names: map[string]bool{}}
	answer := v1.EggImport{Name: e.name, Description: e.description, Images: shown(e.images), Startups: shown(e.startups)}
	var f v1.FieldErrors
	image := pick(&f, "image", e.images, r.Image)
	startup := pick(&f, "startup", e.startups, r.Startup)
	answer.Variables = i.values(&f)
	if err := f.Err(); err != nil {
		return v1.EggImport{}, err
	}
	i.process(image, startup)
	i.install()
	i.spec.Stop = i.stop()
	i.spec.StartPattern = i.startPattern()
	i.configFiles()
	i.spec.DeniedFiles = i.egg.denied
	i.labels()
	i.leftOut()
	answer.Spec, answer.Notes = i.spec, append([]string{}, i.notes...)
	return answer, nil
}

func (i *importer) note(format string, args ...any) {
	i.notes = append(i.notes, fmt.Sprintf(format, args...))
}

func shown(all []choice) []v1.EggChoice {
	list := make([]v1.EggChoice, 0, len(all))
	for _, c := range all {
		list = append(list, v1.EggChoice{Name: c.name, Value: c.value})
	}
	return list
}

// pick returns the choice that a request names by its name or its value, or the first.
func pick(f *v1.FieldErrors, field string, all []choice, text string) choice {
	if text == "" {
		return all[0]
	}
	for _, c := range all {
		if c.name == text || c.value == text {
			return c
		}
	}
	var names []string
	for _, c := range all[:min(len(all), 20)] {
		names = append(names, quoted(c.name))
	}
	f.Add(field, "must be one of %s", strings.Join(names, ", "))
	return choice{}
}

// values determines the values of the variables. A name of the request that the egg does not
// have is an error.
func (i *importer) values(f *v1.FieldErrors) []v1.EggVariable {
	set := map[string]string{}
	for name, value := range i.request.Variables {
		set[strings.ToUpper(name)] = value
	}
	list := make([]v1.EggVariable, 0, len(i.egg.variables))
	for _, v := range i.egg.variables {
		value, given := set[v.name()]
		delete(set, v.name())
		if !given {
			value = v.fallback
		}
		shown := v1.EggVariable{Name: v.name(), Title: v.title, Description: v.description, Default: v.fallback, Value: value,
			Rules: []string{}, Editable: v.editable, Viewable: v.viewable}
		for _, r := range v.rules {
			shown.Rules = append(shown.Rules, r.String())
		}
		switch broken, ok := v.check(value); {
		case !ok && (given || value == ""):
			shown.Error = broken.message(value)
		case !ok: // a default counts, as for the panels
			i.note("variable %s: its default %s", v.name(), broken.message(value))
		}
		for _, r := range v.unchecked() {
			i.note("variable %s: the rule %s is not checked", v.name(), quoted(r.String()))
		}
		i.env[v.name()] = value
		list = append(list, shown)
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		f.Add("variables."+name, "the egg has no such variable")
	}
	return list
}

// message names the rule that a value breaks.
func (r rule) message(value string) string {
	if r.name == "required" {
		return "is required"
	}
	return fmt.Sprintf("%s breaks the rule %s", quoted(value), clipped(r.String(), 200))
}

// process sets what the server runs.
func (i *importer) process(image, startup choice) {
	s := &i.spec
	s.InternalID, s.VolumeID = i.request.InternalID, i.request.VolumeID
	s.Image = image.value
	if local, is := strings.CutPrefix(image.value, "~"); is {
		s.Image, s.PullPolicy = local, v1.PullNever
	}
	s.User = cmp.Or(i.request.User, defaultUser)
	s.Ports = i.request.Ports
	s.Limits.Memory = withAddition(i.request.Memory)
	s.Env = map[string]string{}
	for name, value := range i.env {
		s.Env[name] = literal(value)
	}
	s.Timezone = cmp.Or(i.timezone(), "UTC")
	builtin := map[string]string{"STARTUP": literal(i.startup(startup.value)), "SERVER_MEMORY": "${BERTH_MEMORY}", "SERVER_IP": "${BERTH_IP}",
		"SERVER_PORT": "${BERTH_PORT}", "P_SERVER_UUID": i.uuid()}
	for _, name := range slices.Sorted(maps.Keys(builtin)) {
		if _, is := s.Env[name]; is {
			i.note("variable %s: berth sets it, as the panels do", name)
		}
		s.Env[name] = builtin[name]
	}
	for name := range s.Env {
		i.names[name] = true
	}
	if len(s.Ports) == 0 {
		i.note("no port is given: SERVER_PORT is empty until the container has one")
	}
}

// withAddition returns the limit of a container for the memory of a game, as the panels add to it.
func withAddition(memory int64) int64 {
	return int64(math.Round(float64(memory) * addition(float64(memory)/(1<<20))))
}

// addition returns what the panels multiply the memory of a game with, by its MiB.
func addition(mib float64) float64 {
	switch {
	case mib <= 2048:
		return 1.15
	case mib <= 4096:
		return 1.10
	}
	return 1.05
}

// literal returns a text that stays what it is in env.
func literal(text string) string { return strings.ReplaceAll(text, "${BERTH_", "$${BERTH_") }

// timezone returns the variable SERVER_TIMEZONE if it is a time zone.
func (i *importer) timezone() string {
	zone := i.env["SERVER_TIMEZONE"]
	if _, err := time.LoadLocation(zone); err != nil || zone == "" || zone == "Local" {
		return ""
	}
	return zone
}

// uuid returns a UUID (version 5) that is the same for each import of a container.
func (i *importer) uuid() string {
	return uuid.NewSHA1(uuid.Nil, []byte("berth/egg/"+i.request.InternalID)).String()
}

// reference matches a variable in a startup command.
var reference = regexp.MustCompile(`\{\{[A-Za-z_][A-Za-z0-9_]*\}\}`)

// startup returns a startup command whose references to variables name them as the environment
// does. The image expands them, so that a changed variable needs no other command.
func (i *importer) startup(command string) string {
	if strings.TrimSpace(command) == "" {
		i.note("startup: the egg has none: an image that expects STARTUP runs nothing")
	}
	unknown := map[string]bool{}
	changed := reference.ReplaceAllStringFunc(command, func(found string) string {
		name := found[2 : len(found)-2]
		for _, v := range i.egg.variables {
			if v.written == name {
				return "{{" + v.name() + "}}"
			}
		}
		if _, is := i.env[name]; !is && !slices.Contains([]string{"SERVER_MEMORY", "SERVER_IP", "SERVER_PORT", "P_SERVER_UUID", "TZ"}, name) {
			unknown[name] = true
		}
		return found
	})
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		i.note("startup: %s is no variable of the egg: it is empty unless the image sets it", name)
	}
	return changed
}

// install sets what installs the server. A last command whose status nobody looks at must not
// fail the installation, so the script ends with exit 0.
func (i *importer) install() {
	e, s := i.egg, &i.spec
	if strings.TrimSpace(e.script) == "" {
		return
	}
	script := strings.TrimRight(e.script, "\n") + "\nexit 0\n"
	s.InstallScript, s.InstallImage, s.InstallMount = &script, e.container, "/mnt/server"
	s.InstallEntrypoint, s.InstallUser = e.entrypoint, installerUser
	if !slices.Contains([]string{"sh", "bash", "ash"}, e.entrypoint) {
		i.note("scripts.installation.entrypoint: %s is not sh, bash or ash: bash is used", quoted(e.entrypoint))
		s.InstallEntrypoint = "bash"
	}
	if local, is := strings.CutPrefix(s.InstallImage, "~"); is {
		s.InstallImage = local
	}
}

// stop returns how a server is stopped. ^C is typed into its terminal, and ^^C is what authors
// wrote for it.
func (i *importer) stop() v1.Stop {
	text := i.egg.stop
	key, caret := strings.CutPrefix(text, "^")
	switch upper := strings.ToUpper(strings.TrimPrefix(key, "^")); {
	case strings.TrimSpace(text) == "":
		return v1.Stop{Signal: "SIGTERM"}
	case !caret:
		return v1.Stop{Command: text, Timeout: commandTimeout}
	case strings.HasPrefix(upper, "SIG"):
		return v1.Stop{Signal: upper, Timeout: interruptTimeout}
	case len(upper) == 1 && upper[0] >= 'A' && upper[0] <= 'Z':
		if upper != "C" {
			i.note("config.stop: %s is typed as a control character; the panels kill the server", quoted(text))
		}
		return v1.Stop{Command: "^" + upper, Timeout: interruptTimeout}
	}
	i.note("config.stop: %s is neither a command nor a signal: the server is killed, as the panels do", quoted(text))
	return v1.Stop{Signal: "SIGKILL"}
}

// escapes matches the control sequences of a terminal. berth removes them from a line before
// it is matched.
var escapes = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-Z\\^_])|[\x00-\x08\x0b-\x1f\x7f]`)

// startPattern returns the expression for the lines that config.startup.done names.
func (i *importer) startPattern() string {
	var parts []string
	size := 0
	for _, done := range i.egg.done {
		done = strings.TrimSuffix(strings.TrimSuffix(done, "\n"), "\r")
		expr, is := strings.CutPrefix(done, "regex:")
		if !is {
			expr = regexp.QuoteMeta(escapes.ReplaceAllString(done, ""))
		}
		if expr == "" {
			continue
		}
		if size += len(expr) + 1; size > maxPattern {
			i.note("config.startup.done: is longer than %d bytes: the server counts as running when it starts", maxPattern)
			return ""
		}
		if _, err := compile(expr); is && err != nil {
			i.note("config.startup.done: %s is not an RE2 expression of at most %d steps", quoted(done), maxSteps)
			continue
		}
		parts = append(parts, expr)
	}
	return strings.Join(parts, "|")
}

// labels keeps what a panel's page shows.
func (i *importer) labels() {
	i.spec.Labels = map[string]string{}
	for name, text := range map[string]string{"egg.name": i.egg.name, "egg.uuid": i.egg.uuid, "egg.tags": strings.Join(i.egg.tags, ","),
		"egg.features": strings.Join(i.egg.features, ",")} {
		if text = strings.TrimSpace(text); text != "" {
			i.spec.Labels[name] = text
		}
	}
}

// leftOut adds a note for each other part of the egg that a spec does not have.
func (i *importer) leftOut() {
	for _, name := range i.egg.nameless {
		i.note("variables: %s cannot be the name of a variable: it is left out", quoted(name))
	}
	for _, name := range i.egg.reused {
		i.note("variables: %s is there twice: the last one counts", name)
	}
	for _, v := range i.egg.variables {
		port := i.env[v.name()]
		among := slices.ContainsFunc(i.request.Ports, func(p v1.Port) bool { return strconv.Itoa(p.Port) == port })
		if v.portLike() && !among {
			i.note("variable %s: %s looks like a port, and is not among those of the container", v.name(), quoted(port))
		}
	}
}

// portLike reports whether a variable seems to hold a port.
func (v variable) portLike() bool {
	return strings.Contains(v.name(), "PORT") && integer.MatchString(v.fallback) && len(v.fallback) > 2 && v.name() != "SERVER_PORT"
}
