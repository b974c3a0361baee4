package egg

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "berth/api/v1"
)

// ServerLabel is the label of the volume and the container of a server. Its value is the UUID.
const ServerLabel = "wings.uuid"

// Server is a server as a panel describes it to its node: an egg with the choices for one container.
type Server struct {
	UUID        string
	Name        string
	Suspended   bool
	SkipScripts bool            // nothing is installed
	Pelican     bool            // the panel is Pelican; else Pterodactyl
	StopCommand string          // empty: it is stopped by a signal
	Disk        int64           // bytes; 0: no limit
	Settings    json.RawMessage // as the panel sent them

	settings, process value
}

// Script is what installs a server, as a panel sends it.
type Script struct {
	Image      string `json:"container_image"`
	Entrypoint string `json:"entrypoint"`
	Script     string `json:"script"`
}

// Host is what a node adds to the servers of its panel.
type Host struct {
	User     string // uid:gid of each server
	Timezone string
	Pids     int64
	CPUs     int // of the host; 0: unknown

	// Addition returns what the memory of a server is multiplied with, by its MiB; nil: as the
	// panels do.
	Addition func(mib float64) float64

	RestartMode   string   // after an exit that nobody requested
	AllowedMounts []string // sources of mounts must begin with one of them
}

var serverUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// IsServerUUID reports whether a text can name a server.
func IsServerUUID(text string) bool { return serverUUID.MatchString(text) }

// UnmarshalJSON reads the object of a panel, with the bounds of an egg.
func (s *Server) UnmarshalJSON(content []byte) error {
	var parts struct {
		Settings json.RawMessage `json:"settings"`
		Process  json.RawMessage `json:"process_configuration"`
	}
	if len(content) > MaxSize {
		return errSize
	}
	if err := json.Unmarshal(content, &parts); err != nil {
		return err
	}
	settings, err := parseJSON(parts.Settings)
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	process, err := parseJSON([]byte(cmp.Or(string(parts.Process), "null")))
	if err != nil {
		return fmt.Errorf("process_configuration: %w", err)
	}
	build := settings.get("build")
	*s = Server{UUID: settings.get("uuid").text, Name: settings.path("meta", "name").text, Suspended: settings.get("suspended").truth(),
		SkipScripts: settings.get("skip_egg_scripts").truth(), Settings: parts.Settings, settings: settings, process: process,
		Pelican: build.get("oom_disabled").kind == null && settings.path("container", "oom_disabled").kind == null,
		Disk:    build.get("disk_space").integer() << 20}
	if !IsServerUUID(s.UUID) {
		return errors.New("settings.uuid: is not a UUID")
	}
	if process.path("stop", "type").text == "command" {
		s.StopCommand = process.path("stop", "value").text
	}
	return nil
}

// truth reports whether v is one of the forms of true.
func (v value) truth() bool { return v.text == "true" || v.text == "1" }

// integer returns a number of at most 2^40, and 0 for what is none.
func (v value) integer() int64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(v.text), 64)
	if err != nil || math.Abs(f) > 1<<40 {
		return 0
	}
	return int64(f)
}

// Spec returns the container of a server, and what it does not have of the panel's. Without a script
// its installation is the one that the container has.
func (s Server) Spec(h Host, script *Script) (v1.ContainerSpec, []string) {
	i := &importer{env: s.environment(), names: map[string]bool{}}
	i.request = v1.EggRequest{InternalID: s.UUID, User: h.User, Ports: s.ports(), Memory: s.memory()}
	i.egg = s.egg(script)
	image := choice{"", s.settings.path("container", "image").text}
	startup := choice{"", s.settings.get("invocation").text}
	if s.Pelican {
		startup.value = s.replaced(startup.value)
	}
	i.process(image, startup)
	if script != nil {
		i.install()
		i.ignoreExitCode()
	}
	i.spec.Stop = i.stop()
	i.spec.StartPattern = i.startPattern()
	i.configFiles()
	i.spec.DeniedFiles = i.egg.denied
	s.complete(i, h)
	return i.spec, i.notes
}

// ignoreExitCode has an installation succeed whatever its script exits with, as nodes of the panels do:
// many scripts end with a command that fails, or with the count of something.
func (i *importer) ignoreExitCode() {
	script := ""
	if i.spec.InstallScript != nil {
		script = "trap 'exit 0' EXIT\n" + *i.spec.InstallScript
	}
	i.spec.InstallScript = &script
}

// egg returns the egg that the panel has made the server from.
func (s Server) egg(script *Script) egg {
	e := egg{name: s.Name, done: s.process.path("startup", "done").texts(), stop: s.process.path("stop", "value").text}
	switch s.process.path("stop", "type").text {
	case "signal":
		e.stop = "^" + e.stop
	case "command":
	default:
		e.stop = "" // the engine's stop
	}
	for _, pattern := range s.settings.path("egg", "file_denylist").values {
		if strings.TrimSpace(pattern.text) != "" {
			e.denied = append(e.denied, pattern.text)
		}
	}
	for _, name := range s.settings.get("environment").names {
		e.variables = append(e.variables, variable{written: name})
	}
	if script != nil && !s.SkipScripts {
		e.script, e.container = strings.ReplaceAll(script.Script, "\r\n", "\n"), strings.TrimSpace(script.Image)
		e.entrypoint = path.Base(strings.TrimSpace(script.Entrypoint))
	}
	for _, file := range s.process.get("configs").values {
		create := file.get("create_file")
		f := configFile{path: file.get("file").text, parser: file.get("parser").text, create: create.kind == null || create.truth()}
		f.find.kind = mapping
		for _, r := range file.get("replace").values {
			with := r.get("replace_with")
			if with.kind == null {
				with = r.get("value") // of old eggs
			}
			if condition := r.get("if_value"); !condition.nothing() {
				with = value{kind: mapping, names: []string{condition.text}, values: []value{with}}
			}
			f.find.names, f.find.values = append(f.find.names, r.get("match").text), append(f.find.values, with)
		}
		e.files = append(e.files, f)
	}
	return e
}

// fixed are the variables that no panel and no customer overrides.
func fixed() []string {
	return []string{"TZ", "STARTUP", "SERVER_MEMORY", "SERVER_IP", "SERVER_PORT", "P_SERVER_UUID"}
}

// environment returns the variables of a server, but for the fixed ones.
func (s Server) environment() map[string]string {
	env := map[string]string{}
	all := s.settings.get("environment")
	for i, name := range all.names {
		if upper := strings.ToUpper(name); envName.MatchString(upper) && !slices.Contains(fixed(), upper) {
			env[upper] = scalar(all.values[i])
		}
	}
	return env
}

// scalar returns the text of a variable. Panels send texts; a number has six decimals, as for their
// nodes.
func scalar(v value) string {
	if v.kind == number {
		if f, err := strconv.ParseFloat(v.text, 64); err == nil {
			return strconv.FormatFloat(f, 'f', 6, 64)
		}
	}
	return v.text
}

// memory returns the bytes that a server may plan with; 0: no limit. Pterodactyl counts in MB.
func (s Server) memory() int64 {
	unit := int64(1 << 20)
	if !s.Pelican {
		unit = 1_000_000
	}
	return max(0, s.settings.path("build", "memory_limit").integer()) * unit
}

// ports returns the ports of a server, each for tcp and udp, the default first.
func (s Server) ports() (list []v1.Port) {
	allocations := s.settings.get("allocations")
	add := func(ip string, port value) {
		address, err := netip.ParseAddr(ip)
		n := int(port.integer())
		if err != nil || n < 1 || n > 65535 {
			return
		}
		for _, protocol := range []string{"tcp", "udp"} {
			p := v1.Port{IP: address.String(), Port: n, Protocol: protocol}
			if !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	add(allocations.path("default", "ip").text, allocations.path("default", "port"))
	mappings := allocations.get("mappings")
	for i, ip := range mappings.names {
		for _, port := range mappings.values[i].values {
			add(ip, port)
		}
	}
	return list
}

// inStartup matches a variable in a startup command, and what is left as it is.
var inStartup = regexp.MustCompile(`\[\[[^\]]*\]\]|\{\{\s*[A-Za-z0-9_.-]+\s*\}\}|\$\{[A-Za-z0-9_]+\}`)

// replaced returns a startup command with the values of its variables, as Pelican's node makes it.
func (s Server) replaced(command string) string {
	values := s.environment()
	maps.Copy(values, s.addresses())
	return inStartup.ReplaceAllStringFunc(command, func(found string) string {
		if strings.HasPrefix(found, "[[") {
			return found
		}
		name := strings.TrimSpace(strings.Trim(found, "{}$"))
		if name = strings.TrimPrefix(name, "env."); values[name] != "" {
			return values[name]
		}
		if _, is := values[name]; is {
			return ""
		}
		return "${" + name + "}"
	})
}

// addresses returns the variables that name port, address and memory of a server.
func (s Server) addresses() map[string]string {
	env := map[string]string{"SERVER_IP": "0.0.0.0", "SERVER_PORT": "0",
		"SERVER_MEMORY": strconv.FormatInt(s.settings.path("build", "memory_limit").integer(), 10)}
	if ports := s.ports(); len(ports) > 0 {
		env["SERVER_PORT"] = strconv.Itoa(ports[0].Port)
	}
	return env
}

// complete sets what the server object has and an egg has not.
func (s Server) complete(i *importer, h Host) {
	spec, build := &i.spec, s.settings.get("build")
	maps.Copy(spec.Env, s.addresses()) // inside a container its own address is the one to listen to
	spec.Env["P_SERVER_UUID"] = s.UUID
	spec.Timezone = cmp.Or(i.timezone(), h.Timezone, "UTC")
	spec.Hostname, spec.Cpuset = s.UUID, build.get("threads").text
	spec.ReadOnlyRoot = new(true)
	// A node pulls before each start, but for images of its host. Those of installers it pulls always.
	if spec.PullPolicy == v1.PullNever {
		spec.PullPolicy = v1.PullMissing
	} else {
		spec.PullPolicy = v1.PullAlways
	}
	l := &spec.Limits
	if mib := float64(i.request.Memory) / (1 << 20); h.Addition != nil {
		l.Memory = int64(math.Round(float64(i.request.Memory) * h.Addition(mib)))
	}
	l.Pids, l.Disk, l.IOWeight = h.Pids, s.Disk, uint16(min(1000, max(0, build.get("io_weight").integer())))
	l.CPU = max(0, float64(build.get("cpu_limit").integer())/100)
	if h.CPUs > 0 && l.CPU > float64(h.CPUs) {
		i.note("build.cpu_limit: the host has %d processors", h.CPUs)
		l.CPU = 0
	}
	if swap := build.get("swap").integer(); l.Memory > 0 {
		l.Swap = max(v1.UnlimitedSwap, swap)
		if swap > 0 {
			l.Swap = swap << 20
		}
	}
	kills := build.get("oom_killer").truth()
	if !s.Pelican {
		kills = !build.get("oom_disabled").truth() && !s.settings.path("container", "oom_disabled").truth()
	}
	if !kills && l.Memory > 0 {
		l.OOMKill = new(false)
	}
	spec.RestartPolicy.Mode = h.RestartMode
	if crash := s.settings.get("crash_detection_enabled"); crash.kind != null && !crash.truth() {
		spec.RestartPolicy.Mode = v1.RestartNever
	}
	if s.settings.path("allocations", "force_outgoing_ip").truth() {
		i.note("allocations.force_outgoing_ip: berth cannot choose the address of outgoing connections")
	}
	spec.Labels = map[string]string{}
	labels := s.settings.get("labels")
	for n, name := range labels.names {
		spec.Labels[name] = labels.values[n].text
	}
	spec.Labels[ServerLabel] = s.UUID
	s.mounts(i, h)
}

// mounts sets the mounts that the node allows.
func (s Server) mounts(i *importer, h Host) {
	for _, m := range s.settings.get("mounts").values {
		source, target := path.Clean(m.get("source").text), path.Clean(m.get("target").text)
		allowed := slices.ContainsFunc(h.AllowedMounts, func(dir string) bool {
			dir = strings.TrimRight(path.Clean(dir), "/")
			return source == dir || strings.HasPrefix(source, dir+"/")
		})
		switch {
		case !path.IsAbs(source) || !allowed:
			i.note("mounts: %s is not below one of allowed_mounts", quoted(source))
		case target == v1.Home || strings.HasPrefix(target, v1.Home+"/"):
			i.note("mounts: %s is in the volume of the server", quoted(target))
		default:
			i.spec.Mounts = append(i.spec.Mounts, v1.Mount{Source: source, Target: target, ReadOnly: m.get("read_only").truth()})
		}
	}
}
