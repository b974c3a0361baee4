package intent

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a host need not have the database

	"github.com/distribution/reference"

	v1 "berth/api/v1"
)

// The limits of a container's fields.
const (
	minMemory   = 6 << 20  // bytes; the engine's own minimum
	minShm      = 64 << 10 // bytes
	minCPU      = 0.01     // cores; the engine's own minimum
	maxCPU      = 4096
	maxUserName = 32      // characters; the limit of useradd
	maxHostname = 63      // characters; the kernel accepts 64
	maxTimezone = 64      // bytes; the longest name of the database has 32
	maxCommand  = 128_000 // bytes; the kernel accepts 128 KiB for one argument
	maxImage    = 512     // bytes
	maxPattern  = 4096    // bytes
	maxSteps    = 10_000  // instructions of a compiled pattern
	maxStop     = time.Hour
	maxInstall  = 30 * 24 * time.Hour
	minStart    = time.Second
	maxStart    = 30 * 24 * time.Hour
)

var (
	internalID = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)
	cpuList    = regexp.MustCompile(`^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$`)
	userName   = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9_.-]*(:[a-zA-Z0-9_][a-zA-Z0-9_.-]*)?$`)
	hostName   = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*$`)
	zoneName   = regexp.MustCompile(`^[a-zA-Z0-9_+-]+(/[a-zA-Z0-9_+-]+)*$`)
	signalName = regexp.MustCompile(`^SIG(HUP|INT|QUIT|ABRT|KILL|USR1|USR2|ALRM|TERM|CONT|WINCH|PWR|RTMIN(\+[0-9]{1,2})?)$`)
)

// IsContainerID reports whether id is a valid internal_id of a container.
func IsContainerID(id string) bool { return internalID.MatchString(id) }

func checkID(f *v1.FieldErrors, field, id string) {
	switch {
	case id == "":
		f.Add(field, "is required")
	case !internalID.MatchString(id):
		f.Add(field, "must be 1 to 63 letters, digits, _, . or -, and begin with a letter or digit")
	}
}

// CheckContainer adds every error of a container's id and spec to f, and converts
// spec to its canonical form: canonical addresses, defaults, and nil for empty lists
// and maps.
func CheckContainer(f *v1.FieldErrors, p Policy, id string, spec *v1.ContainerSpec) {
	if spec.ReadOnlyRoot == nil {
		spec.ReadOnlyRoot = &p.ReadOnlyRoot
	}
	*spec = v1.WithDefaults(*spec)
	spec.InternalID = ""
	checkID(f, "internal_id", id)
	checkImage(f, "image", spec.Image, true)
	checkPullPolicy(f, spec.PullPolicy)
	if spec.VolumeID == "" {
		f.Add("volume_id", "is required")
	}
	checkText(f, "startup_command", spec.StartupCommand)
	checkPattern(f, "start_pattern", spec.StartPattern)
	checkStartTimeout(f, time.Duration(spec.StartTimeout))
	checkInstall(f, spec)
	spec.Ports = CheckBindings(f, spec.Ports)
	checkLimits(f, p, &spec.Limits)
	checkProcess(f, spec)
	checkMaps(f, spec)
	checkMounts(f, p, spec)
	checkPlacement(f, p, &spec.Placement)
	checkEngine(f, p, spec)
	checkConfigFiles(f, spec)
	spec.DeniedFiles = checkPatterns(f, "denied_files", spec.DeniedFiles)
	checkStop(f, &spec.Stop)
	checkRestart(f, spec.RestartPolicy)
	if spec.RegistryAuth != "" && !slices.Contains(p.Registries, spec.RegistryAuth) {
		f.Add("registry_auth", "must be a host of docker.registries")
	} else {
		checkRegistry(f, *spec)
	}
	switch spec.Power {
	case "", v1.PowerOn, v1.PowerOff:
	default:
		f.Add("power", "must be running or stopped")
	}
}

func checkImage(f *v1.FieldErrors, field, image string, required bool) {
	switch {
	case image == "" && required:
		f.Add(field, "is required")
	case image != "" && !isImage(image):
		f.Add(field, "must be an image reference such as debian:12")
	}
}

// isImage reports whether image is a reference that the engine accepts.
func isImage(image string) bool {
	_, err := reference.ParseAnyReference(image)
	return err == nil && len(image) <= maxImage
}

func checkText(f *v1.FieldErrors, field, text string) {
	switch {
	case strings.ContainsRune(text, 0):
		f.Add(field, "must not hold NUL")
	case len(text) > maxCommand:
		f.Add(field, "must be at most %d bytes", maxCommand)
	}
}

func checkPattern(f *v1.FieldErrors, field, pattern string) {
	if len(pattern) > maxPattern {
		f.Add(field, "must be at most %d bytes", maxPattern)
		return
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		f.Add(field, "must be an RE2 expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return
	}
	// Every byte of output is matched against every instruction. Repeats are
	// expanded, so a short pattern may have millions of instructions.
	if steps, err := syntax.Compile(tree.Simplify()); err != nil || len(steps.Inst) > maxSteps {
		f.Add(field, "must be at most %d steps: repeat less in it", maxSteps)
	}
}

func checkStartTimeout(f *v1.FieldErrors, d time.Duration) {
	if d != 0 && (d < minStart || d > maxStart) {
		f.Add("start_timeout", "must be 0s, or between 1s and 30d")
	}
}

func checkInstall(f *v1.FieldErrors, spec *v1.ContainerSpec) {
	checkText(f, "install_script", spec.Script())
	checkImage(f, "install_image", spec.InstallImage, false)
	if d := time.Duration(spec.InstallTimeout); d < 0 || d > maxInstall {
		f.Add("install_timeout", "must be between 0s and 30d")
	}
	checkInstallMount(f, spec)
	if !slices.Contains([]string{"", "sh", "bash", "ash"}, spec.InstallEntrypoint) {
		f.Add("install_entrypoint", "must be sh, bash or ash")
	}
	checkUser(f, "install_user", spec.InstallUser)
}

// checkInstallMount checks install_mount, and makes it empty if it is the default. Both
// containers have the mounts of the spec.
func checkInstallMount(f *v1.FieldErrors, spec *v1.ContainerSpec) {
	switch {
	case spec.InstallMount == "":
		return
	case !absolute(spec.InstallMount) || path.Clean(spec.InstallMount) == "/":
		f.Add("install_mount", "must be an absolute path other than /")
		return
	case inKernelPath(spec.InstallMount):
		f.Add("install_mount", "must not be in /proc, /sys or /dev")
		return
	}
	spec.InstallMount = path.Clean(spec.InstallMount)
	for i, m := range spec.Mounts {
		if absolute(m.Target) && path.Clean(m.Target) == spec.InstallMount {
			f.Add("install_mount", "must not be the target of mounts[%d]", i)
		}
	}
	if spec.InstallMount == v1.Home {
		spec.InstallMount = ""
	}
}

func checkPullPolicy(f *v1.FieldErrors, p v1.PullPolicy) {
	switch p {
	case v1.PullMissing, v1.PullAlways, v1.PullNever:
	default:
		f.Add("pull_policy", "must be missing, always or never")
	}
}

func checkLimits(f *v1.FieldErrors, p Policy, l *v1.Limits) {
	if l.Memory != 0 && l.Memory < minMemory {
		f.Add("limits.memory", "must be 0 or at least %d bytes (6 MiB)", minMemory)
	}
	if math.IsNaN(l.CPU) || math.IsInf(l.CPU, 0) || l.CPU != 0 && (l.CPU < minCPU || l.CPU > maxCPU) {
		f.Add("limits.cpu", "must be 0 or between %v and %d cores", minCPU, maxCPU)
	} else if p.CPUs > 0 && l.CPU > float64(p.CPUs) {
		f.Add("limits.cpu", "must be at most %d, the number of the host's processors", p.CPUs)
	}
	if l.Swap < v1.UnlimitedSwap {
		f.Add("limits.swap", "must be at least 0, or -1 for no limit")
	}
	if l.Swap > 0 && l.Memory == 0 {
		f.Add("limits.swap", "needs limits.memory")
	}
	if l.Memory > 0 && l.Swap > math.MaxInt64-l.Memory {
		f.Add("limits.swap", "must be at most %d together with limits.memory", int64(math.MaxInt64))
	}
	if l.Pids < 0 {
		f.Add("limits.pids", "must not be negative")
	}
	if l.Disk < 0 {
		f.Add("limits.disk", "must not be negative")
	}
	if l.WithoutOOMKill() && l.Memory == 0 {
		f.Add("limits.oom_kill", "false needs limits.memory")
	}
	if !l.WithoutOOMKill() {
		l.OOMKill = nil
	}
	if l.IOWeight != 0 && (l.IOWeight < 10 || l.IOWeight > 1000) {
		f.Add("limits.io_weight", "must be 0 or between 10 and 1000")
	}
}

func checkProcess(f *v1.FieldErrors, spec *v1.ContainerSpec) {
	if spec.Cpuset != "" && !cpuList.MatchString(spec.Cpuset) {
		f.Add("cpuset", "must be a list of cpus such as 0-2,4")
	}
	checkUser(f, "user", spec.User)
	checkShm(f, spec)
	if spec.Hostname != "" && (len(spec.Hostname) > maxHostname || !hostName.MatchString(spec.Hostname)) {
		f.Add("hostname", "must be at most %d letters, digits, - or ., where each label begins and ends with a letter or digit, such as "+
			"mc.example.com", maxHostname)
	}
	if spec.Timezone != "" {
		checkTimezone(f, spec.Timezone)
	}
	switch {
	case spec.Workdir == "":
	case !absolute(spec.Workdir):
		f.Add("workdir", "must be an absolute path")
	case inKernelPath(spec.Workdir):
		f.Add("workdir", "must not be in /proc, /sys or /dev: name a directory of the image or of "+v1.Home)
	}
}

// checkShm checks the size of /dev/shm, whose content counts as memory of the container.
func checkShm(f *v1.FieldErrors, spec *v1.ContainerSpec) {
	switch {
	case spec.ShmSize != 0 && spec.ShmSize < minShm:
		f.Add("shm_size", "must be 0 or at least %d bytes (64 KiB)", minShm)
	case spec.Limits.Memory > 0 && spec.ShmSize > spec.Limits.Memory:
		f.Add("shm_size", "must be at most limits.memory")
	}
}

// checkTimezone adds the error of the name of a time zone to f, and reports whether it has none.
func checkTimezone(f *v1.FieldErrors, name string) bool {
	is := isTimezone(name)
	if !is {
		f.Add("timezone", "must be the name of an IANA time zone such as Europe/Berlin")
	}
	return is
}

// isTimezone reports whether name is a time zone of the IANA database. LoadLocation also
// knows Local, and files of the host that other databases do not have.
func isTimezone(name string) bool {
	if len(name) > maxTimezone || !zoneName.MatchString(name) || slices.Contains([]string{"Local", "localtime", "posixrules"}, name) ||
		strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/") {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}

func checkUser(f *v1.FieldErrors, field, user string) {
	switch {
	case user == "":
	case !userName.MatchString(user):
		f.Add(field, "must be a name or number, or user:group")
	default:
		for id := range strings.SplitSeq(user, ":") {
			if strings.Trim(id, "0123456789") == "" && !isUnixID(id) || len(id) > maxUserName {
				f.Add(field, "must be at most %d, or a name of at most %d characters", math.MaxInt32, maxUserName)
				return
			}
		}
	}
}

// isNamed reports whether a user is one that only its image knows the number of. Every engine knows root.
func isNamed(user string) bool {
	for name := range strings.SplitSeq(user, ":") {
		if name != "root" && strings.Trim(name, "0123456789") != "" {
			return true
		}
	}
	return false
}

// isUnixID reports whether a number is an id that engines accept.
func isUnixID(digits string) bool {
	_, err := strconv.ParseInt(digits, 10, 32)
	return err == nil
}

// inKernelPath reports whether an absolute path of a container is in a file system of
// the kernel. The entries of /proc/self/fd may lead to the host (CVE-2024-21626).
func inKernelPath(p string) bool {
	p = path.Clean(p)
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	return false
}

func checkStop(f *v1.FieldErrors, s *v1.Stop) {
	if s.Command != "" && s.Signal != "" {
		f.Add("stop", "must have a command or a signal, not both")
	}
	checkText(f, "stop.command", s.Command)
	if name, caret := strings.CutPrefix(strings.ToUpper(s.Command), "^SIG"); caret && !signalName.MatchString("SIG"+name) {
		f.Add("stop.command", "must name a signal such as ^SIGINT, if it begins with ^SIG")
	}
	if s.Signal != "" {
		name := strings.ToUpper(s.Signal)
		if !strings.HasPrefix(name, "SIG") {
			name = "SIG" + name
		}
		if !signalName.MatchString(name) {
			f.Add("stop.signal", "must be a signal's name such as SIGTERM or SIGINT")
		}
		s.Signal = name
	}
	if d := time.Duration(s.Timeout); d < 0 || d > maxStop {
		f.Add("stop.timeout", "must be between 0s and 1h")
	}
}

func checkRestart(f *v1.FieldErrors, r v1.RestartPolicy) {
	switch r.Mode {
	case v1.RestartNever, v1.RestartOnFailure, v1.RestartAlways:
	default:
		f.Add("restart_policy.mode", "must be never, on-failure or always")
	}
}

// needs lists what an engine may lack, by the names of package runtime, with the field of a
// request that needs it, and what to do if not to leave it out.
var needs = []struct {
	capability, field string
	needed            func(*v1.ContainerSpec) bool
	remedy            string
}{
	{"swap", "limits.swap", func(s *v1.ContainerSpec) bool { return s.Limits.Swap != 0 }, ""},
	{"pids", "limits.pids", func(s *v1.ContainerSpec) bool { return s.Limits.Pids != 0 }, ""},
	{"no_oom_kill", "limits.oom_kill", func(s *v1.ContainerSpec) bool { return s.Limits.WithoutOOMKill() }, ""},
	{"io_weight", "limits.io_weight", func(s *v1.ContainerSpec) bool { return s.Limits.IOWeight != 0 }, ""},
	{"cpuset", "cpuset", func(s *v1.ContainerSpec) bool { return s.Cpuset != "" }, ""},
	{"host_mounts", "mounts", func(s *v1.ContainerSpec) bool { return len(s.Mounts) > 0 }, ""},
	{"user_names", "user", func(s *v1.ContainerSpec) bool { return isNamed(s.User) }, "must be root or a number, such as 988 or 988:988"},
	{"user_names", "install_user", func(s *v1.ContainerSpec) bool { return isNamed(s.InstallUser) },
		"must be root or a number, such as 988 or 988:988"},
	{"held_images", "pull_policy", func(s *v1.ContainerSpec) bool { return s.PullPolicy == v1.PullNever }, "must not be never"},
	{"placement", "placement", func(s *v1.ContainerSpec) bool { return len(s.Placement.Rules()) > 0 }, ""},
	{"any_env", "env", func(s *v1.ContainerSpec) bool {
		for name := range s.Env {
			if strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' }) {
				return true
			}
		}
		return false
	}, "must have names of printable ASCII"},
}

// checkEngine refuses what the engine lacks: a limit that is stored and not enforced would be
// a lie.
func checkEngine(f *v1.FieldErrors, p Policy, spec *v1.ContainerSpec) {
	for _, n := range needs {
		if slices.Contains(p.Lacks, n.capability) && n.needed(spec) {
			f.Add(n.field, "%s: the engine %s lacks %s", cmp.Or(n.remedy, "must be left out"), p.Engine, n.capability)
		}
	}
}

// reservedDir is where a container sees its first process; see runtime/keeper.
const reservedDir = "/.berth"

func checkMounts(f *v1.FieldErrors, p Policy, spec *v1.ContainerSpec) {
	if len(spec.Mounts) > maxList {
		f.Add("mounts", "must be at most %d", maxList)
		return
	}
	if len(spec.Mounts) == 0 {
		spec.Mounts = nil
	}
	if slices.Contains(p.Lacks, "host_mounts") {
		return // checkEngine reports them
	}
	targets := map[string]bool{v1.Home: true}
	for i := range spec.Mounts {
		m := &spec.Mounts[i]
		at := fmt.Sprintf("mounts[%d]", i)
		if !absolute(m.Source) {
			f.Add(at+".source", "must be an absolute path")
		} else if m.Source = path.Clean(m.Source); !p.mayMount(m.Source) {
			f.Add(at+".source", "must be below a directory of docker.allowed_mounts")
		} else if reason := p.refuses(m.Source); reason != "" {
			f.Add(at+".source", "%s", reason)
		}
		if !absolute(m.Target) || path.Clean(m.Target) == "/" {
			f.Add(at+".target", "must be an absolute path other than /")
			continue
		}
		m.Target = path.Clean(m.Target)
		if inKernelPath(m.Target) {
			f.Add(at+".target", "must not be in /proc, /sys or /dev")
		}
		if m.Target == reservedDir || strings.HasPrefix(m.Target, reservedDir+"/") {
			f.Add(at+".target", "must not be in %s, where the first process of the container is", reservedDir)
		}
		if targets[m.Target] {
			f.Add(at+".target", "is mounted twice")
		}
		targets[m.Target] = true
	}
}

// absolute reports whether p is an absolute path without "..", NUL or a colon, which
// is a separator in the engine's short form.
func absolute(p string) bool {
	return strings.HasPrefix(p, "/") && !strings.ContainsAny(p, "\x00:") &&
		!slices.Contains(strings.Split(p, "/"), "..") && len(p) <= v1.MaxPath
}

// checkRegistry adds an error if no image of spec is from the registry whose credentials it names.
func checkRegistry(f *v1.FieldErrors, spec v1.ContainerSpec) {
	if spec.RegistryAuth == "" || !isImage(spec.Image) || spec.InstallImage != "" && !isImage(spec.InstallImage) { // checkImage reports it
		return
	}
	image, install := registryOf(spec.Image), registryOf(cmp.Or(spec.InstallImage, spec.Image))
	switch host := spec.RegistryAuth; {
	case FromRegistry(spec.Image, host) || spec.InstallImage != "" && FromRegistry(spec.InstallImage, host):
	case image != install:
		f.Add("image", "must be from %s, the registry that registry_auth names, unless install_image is; it is from %s, and "+
			"install_image from %s", host, image, install)
	default:
		f.Add("image", "must be from %s, the registry that registry_auth names; it is from %s", host, image)
	}
}

// FromRegistry reports whether an image is pulled from a host of docker.registries.
func FromRegistry(image, host string) bool {
	return strings.EqualFold(registryOf(image), v1.CanonicalRegistry(host))
}

// registryOf returns the host that image is pulled from. An image that is named only
// by its id has no registry.
func registryOf(image string) string {
	name, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "no registry"
	}
	return reference.Domain(name)
}

// Policy is what the operator permits, and the defaults of containers.
type Policy struct {
	AllowedMounts []string // directories of the host that mounts may be taken from
	Registries    []string // hosts that have credentials
	ReadOnlyRoot  bool     // of containers whose request does not set it

	CPUs int // processors of the engine's host; 0: unknown

	Engine string   // its name
	Lacks  []string // the capabilities that it lacks, by the names of package runtime

	Placement v1.PlacementPolicy

	// CheckMount returns why the host refuses the source of a mount, or ""; nil: it refuses none.
	CheckMount func(source string) (reason string)
}

func (p Policy) refuses(source string) (reason string) {
	if p.CheckMount == nil {
		return ""
	}
	return p.CheckMount(source)
}

// mayMount reports whether source is one of the allowed directories or below one.
func (p Policy) mayMount(source string) bool {
	for _, dir := range p.AllowedMounts {
		dir = path.Clean(dir)
		if source == dir || dir == "/" || strings.HasPrefix(source, dir+"/") {
			return true
		}
	}
	return false
}
