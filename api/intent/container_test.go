package intent_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

func TestCreateStoresTheSpecAndClaimsItsPorts(t *testing.T) {
	w := newWorld(t)
	spec := w.spec(1000, 1001)
	spec.VolumeID = w.volume[:8]
	spec.Power = v1.PowerOn
	spec.RunGeneration, spec.InstallGeneration, spec.KillGeneration = 7, 7, 7
	require.NoError(t, intent.CreateContainer(w.store, intent.Policy{}, "mc", spec))

	o := w.get("mc")
	require.Equal(t, w.volume, o.Spec.VolumeID, "the full id is stored")
	require.Equal(t, v1.PowerOn, o.Spec.Power)
	require.EqualValues(t, 1, o.Spec.RunGeneration)
	require.EqualValues(t, 1, o.Spec.InstallGeneration)
	require.Zero(t, o.Spec.KillGeneration)
	require.Equal(t, v1.RestartOnFailure, o.Spec.RestartPolicy.Mode)
	for _, port := range []int{1000, 1001} {
		require.Equal(t, "mc", string(w.port(port, "tcp").Container))
		require.True(t, w.port(port, "tcp").InUse)
	}
	require.Empty(t, w.port(1000, "udp").Container)
}

func TestCreateRefusals(t *testing.T) {
	w := newWorld(t)
	w.create("taken", 1005)
	for name, c := range map[string]struct {
		id     string
		change func(*v1.ContainerSpec)
		want   error
	}{
		"exists":          {"taken", func(*v1.ContainerSpec) {}, v1.ErrContainerExists},
		"no volume":       {"a", func(s *v1.ContainerSpec) { s.VolumeID = "ffffffff" }, v1.ErrVolumeNotFound},
		"no such uuid":    {"a", func(s *v1.ContainerSpec) { s.VolumeID = "nonsense" }, v1.ErrVolumeNotFound},
		"not in pool":     {"a", func(s *v1.ContainerSpec) { s.Ports = tcp(99) }, v1.ErrPortNotInPool},
		"wrong address":   {"a", func(s *v1.ContainerSpec) { s.Ports = []v1.Port{{IP: "10.0.0.2", Port: 1000, Protocol: "tcp"}} }, v1.ErrPortNotInPool},
		"bound":           {"a", func(s *v1.ContainerSpec) { s.Ports = tcp(1000, 1005) }, v1.Errorf(v1.PortBound, "Port is already bound by container taken")},
		"volume first":    {"taken", func(s *v1.ContainerSpec) { s.VolumeID = "ffffffff" }, v1.ErrVolumeNotFound},
		"exists first":    {"taken", func(s *v1.ContainerSpec) { s.Ports = tcp(99) }, v1.ErrContainerExists},
		"pool over bound": {"a", func(s *v1.ContainerSpec) { s.Ports = tcp(1005, 99) }, v1.ErrPortNotInPool},
	} {
		t.Run(name, func(t *testing.T) {
			spec := w.spec(1000)
			c.change(&spec)
			w.unchanged(func() {
				var refusal *v1.Error
				require.ErrorAs(t, intent.CreateContainer(w.store, intent.Policy{}, c.id, spec), &refusal)
				require.Equal(t, c.want, refusal)
			})
		})
	}
}

func TestErrorsOfEachField(t *testing.T) {
	for field, change := range map[string]func(*v1.ContainerSpec){
		"image":                   func(s *v1.ContainerSpec) { s.Image = "-v" },
		"volume_id":               func(s *v1.ContainerSpec) { s.VolumeID = "" },
		"startup_command":         func(s *v1.ContainerSpec) { s.StartupCommand = "a\x00b" },
		"start_pattern":           func(s *v1.ContainerSpec) { s.StartPattern = "(" },
		"install_script":          func(s *v1.ContainerSpec) { s.InstallScript = new(strings.Repeat("x", 200_000)) },
		"install_image":           func(s *v1.ContainerSpec) { s.InstallImage = "a b" },
		"start_timeout":           func(s *v1.ContainerSpec) { s.StartTimeout = v1.Duration(time.Second - 1) },
		"install_timeout":         func(s *v1.ContainerSpec) { s.InstallTimeout = -1 },
		"ports[0].ip":             func(s *v1.ContainerSpec) { s.Ports[0].IP = "010.0.0.1" },
		"ports[0].port":           func(s *v1.ContainerSpec) { s.Ports[0].Port = 65536 },
		"ports[1].protocol":       func(s *v1.ContainerSpec) { s.Ports[1].Protocol = "TCP" },
		"ports[1].container_port": func(s *v1.ContainerSpec) { s.Ports[1].ContainerPort = -1 },
		"ports[1]":                func(s *v1.ContainerSpec) { s.Ports[1] = s.Ports[0] },
		"limits.memory":           func(s *v1.ContainerSpec) { s.Limits.Memory = 6<<20 - 1 },
		"limits.cpu":              func(s *v1.ContainerSpec) { s.Limits.CPU = math.Inf(1) },
		"pull_policy":             func(s *v1.ContainerSpec) { s.PullPolicy = "sometimes" },
		"install_mount":           func(s *v1.ContainerSpec) { s.InstallMount = "/dev/shm" },
		"install_entrypoint":      func(s *v1.ContainerSpec) { s.InstallEntrypoint = "fish" },
		"limits.oom_kill":         func(s *v1.ContainerSpec) { s.Limits.OOMKill = new(bool) },
		"limits.swap":             func(s *v1.ContainerSpec) { s.Limits.Swap = 1 },
		"limits.pids":             func(s *v1.ContainerSpec) { s.Limits.Pids = -1 },
		"limits.disk":             func(s *v1.ContainerSpec) { s.Limits.Disk = -1 },
		"limits.io_weight":        func(s *v1.ContainerSpec) { s.Limits.IOWeight = 9 },
		"env.A=B":                 func(s *v1.ContainerSpec) { s.Env = map[string]string{"A=B": "c"} },
		"env":                     func(s *v1.ContainerSpec) { s.Env = map[string]string{"": "c"} },
		"labels.io.berth.store":   func(s *v1.ContainerSpec) { s.Labels = map[string]string{"io.berth.store": "c"} },
		"cpuset":                  func(s *v1.ContainerSpec) { s.Cpuset = "0;1" },
		"user":                    func(s *v1.ContainerSpec) { s.User = "a b" },
		"install_user":            func(s *v1.ContainerSpec) { s.InstallUser = "a b" },
		"workdir":                 func(s *v1.ContainerSpec) { s.Workdir = "home" },
		"hostname":                func(s *v1.ContainerSpec) { s.Hostname = "a_b" },
		"mounts[0].source":        func(s *v1.ContainerSpec) { s.Mounts = []v1.Mount{{Source: "/srv/../etc", Target: "/x"}} },
		"mounts[1].source": func(s *v1.ContainerSpec) {
			s.Mounts = []v1.Mount{{Source: "/srv/maps", Target: "/x"}, {Source: "/srv2", Target: "/y"}}
		},
		"mounts[0].target":    func(s *v1.ContainerSpec) { s.Mounts = []v1.Mount{{Source: "/srv", Target: "/home/container/"}} },
		"stop":                func(s *v1.ContainerSpec) { s.Stop = v1.Stop{Command: "stop", Signal: "SIGINT"} },
		"stop.signal":         func(s *v1.ContainerSpec) { s.Stop.Signal = "SIGNAL" },
		"stop.timeout":        func(s *v1.ContainerSpec) { s.Stop.Timeout = -1 },
		"restart_policy.mode": func(s *v1.ContainerSpec) { s.RestartPolicy.Mode = "sometimes" },
		"registry_auth":       func(s *v1.ContainerSpec) { s.RegistryAuth = "other.example" },
		"power":               func(s *v1.ContainerSpec) { s.Power = "on" },
	} {
		t.Run(field, func(t *testing.T) {
			spec := v1.ContainerSpec{Image: "busybox", VolumeID: "x", Ports: tcp(1000, 1001)}
			policy := intent.Policy{AllowedMounts: []string{"/srv"}, Registries: []string{"r.example"}}
			var none v1.FieldErrors
			intent.CheckContainer(&none, policy, "mc", &spec)
			require.NoError(t, none.Err())

			change(&spec)
			var f v1.FieldErrors
			intent.CheckContainer(&f, policy, "mc", &spec)
			require.ErrorIs(t, f.Err(), &v1.Error{Code: v1.InvalidRequest})
			require.True(t, strings.HasPrefix(f.Err().Error(), field+": "), f.Err().Error())
			require.NotContains(t, f.Err().Error(), "; ", "one fault only")
		})
	}
}

// TestUsersAndWorkdirsOutOfRange checks values that an engine accepts, or refuses late.
func TestUsersAndWorkdirsOutOfRange(t *testing.T) {
	fault := func(change func(*v1.ContainerSpec)) string {
		spec := v1.ContainerSpec{Image: "busybox", VolumeID: "x"}
		change(&spec)
		var f v1.FieldErrors
		intent.CheckContainer(&f, intent.Policy{AllowedMounts: []string{"/srv"}}, "mc", &spec)
		if f.Err() == nil {
			return ""
		}
		field, _, _ := strings.Cut(f.Err().Error(), ":")
		return field
	}
	for user, field := range map[string]string{
		"2147483648": "user", "99999999999999999999": "user", "0:2147483648": "user", "-1": "user", "1:-1": "user",
		strings.Repeat("a", 33): "user", "a\x1bb": "user", "a/b": "user", "a:b:c": "user", ":": "user",
		"2147483647:2147483647": "", "0": "", "www-data": "", "minecraft:games": "", "007": "",
	} {
		require.Equal(t, field, fault(func(s *v1.ContainerSpec) { s.User = user }), user)
	}
	for dir, field := range map[string]string{
		"/proc": "workdir", "/proc/self/fd/7": "workdir", "//proc//self": "workdir", "/./sys/fs": "workdir", "/dev/fd/7": "workdir",
		"/x/../proc": "workdir", "/": "", "/procs": "", "/home/container/proc": "",
	} {
		require.Equal(t, field, fault(func(s *v1.ContainerSpec) { s.Workdir = dir }), dir)
		if dir != "/" {
			wantTarget := strings.Replace(field, "workdir", "mounts[0].target", 1)
			require.Equal(t, wantTarget, fault(func(s *v1.ContainerSpec) { s.Mounts = []v1.Mount{{Source: "/srv", Target: dir}} }), dir)
		}
	}
}

func TestHostnames(t *testing.T) {
	for hostname, valid := range map[string]bool{
		"mc": true, "mc.example.com": true, "0": true, "7-days": true, "a--b": true, "MC": true, strings.Repeat("a", 63): true,
		"-a": false, "a-": false, "a.-b": false, "a-.b": false, ".a": false, "a.": false, "a..b": false, "a b": false, "a_b": false,
		"a\n": false, "a\x00": false, "é": false, strings.Repeat("a", 64): false, strings.Repeat("a.", 31) + "ab": false,
	} {
		spec := v1.ContainerSpec{Image: "busybox", VolumeID: "x", Hostname: hostname}
		var f v1.FieldErrors
		intent.CheckContainer(&f, intent.Policy{}, "mc", &spec)
		require.Equal(t, valid, f.Err() == nil, "%q: %v", hostname, f.Err())
	}
}

func TestTimezones(t *testing.T) {
	for zone, valid := range map[string]bool{
		"UTC": true, "Europe/Berlin": true, "America/Argentina/Buenos_Aires": true, "Etc/GMT+5": true, "EST5EDT": true, "": true,
		"Local": false, "localtime": false, "posix/Europe/Berlin": false, "posixrules": false, "right/UTC": false, "Europe": false,
		"/usr/share/zoneinfo/UTC": false, "../zoneinfo/UTC": false, "Etc//UTC": false, "./UTC": false, "zone.tab": false, "U\x00TC": false,
		"CEST": false, "Europe/berlin ": false, strings.Repeat("a", 5000): false,
	} {
		spec := v1.ContainerSpec{Image: "busybox", VolumeID: "x", Timezone: zone}
		var f v1.FieldErrors
		intent.CheckContainer(&f, intent.Policy{}, "mc", &spec)
		require.Equal(t, valid, f.Err() == nil, "%q: %v", zone, f.Err())
	}
}

// TestDefaultsAreStoredEmpty: a spec that names a default is stored like one that leaves
// it empty, so that an apply of either changes nothing.
func TestDefaultsAreStoredEmpty(t *testing.T) {
	kill := true
	spec := v1.ContainerSpec{Image: "busybox", VolumeID: "x", PullPolicy: v1.PullMissing, InstallMount: "/home/container/", Limits: v1.Limits{OOMKill: &kill}}
	empty := v1.ContainerSpec{Image: "busybox", VolumeID: "x"}
	var f v1.FieldErrors
	intent.CheckContainer(&f, intent.Policy{}, "mc", &spec)
	intent.CheckContainer(&f, intent.Policy{}, "mc", &empty)
	require.NoError(t, f.Err())
	require.Equal(t, empty, spec)
}

func TestGoodSpecsPass(t *testing.T) {
	spec := v1.ContainerSpec{
		Image: "r.example/a/b:1@sha256:" + strings.Repeat("0123", 16), VolumeID: "x", StartPattern: `\[Server\] Done \(`,
		Ports:      []v1.Port{{IP: "::ffff:10.0.0.1", Port: 1000, Protocol: "tcp", ContainerPort: 1000}},
		Limits:     v1.Limits{Memory: 6 << 20, CPU: 0.5, Swap: v1.UnlimitedSwap, Pids: 1, Disk: 1, IOWeight: 10, OOMKill: new(bool)},
		PullPolicy: v1.PullAlways, InstallMount: "/mnt/server/", InstallEntrypoint: "bash", Timezone: "Europe/Berlin", ReadOnlyRoot: new(true),
		Env: map[string]string{}, Labels: map[string]string{"a": "b"}, Cpuset: "0-2,4", User: "1000:1000", Workdir: "/x", Hostname: "mc",
		Mounts: []v1.Mount{{Source: "/srv/", Target: "/data/"}}, Stop: v1.Stop{Signal: "int"},
		RegistryAuth: "r.example", Power: v1.PowerOn,
	}
	var f v1.FieldErrors
	intent.CheckContainer(&f, intent.Policy{AllowedMounts: []string{"/srv"}, Registries: []string{"r.example"}}, "A1_.-", &spec)
	require.NoError(t, f.Err())
	require.Equal(t, v1.Port{IP: "10.0.0.1", Port: 1000, Protocol: "tcp"}, spec.Ports[0])
	require.Nil(t, spec.Env)
	require.Equal(t, v1.Mount{Source: "/srv", Target: "/data"}, spec.Mounts[0])
	require.Equal(t, "SIGINT", spec.Stop.Signal)
	require.Equal(t, "/mnt/server", spec.InstallMount)
}

// TestMountThatTheHostRefuses checks only the sources that are allowed.
func TestMountThatTheHostRefuses(t *testing.T) {
	var f v1.FieldErrors
	var checked []string
	policy := intent.Policy{AllowedMounts: []string{"/srv"}, CheckMount: func(source string) string {
		checked = append(checked, source)
		return "is 100% a link"
	}}
	spec := v1.ContainerSpec{Image: "busybox:1", VolumeID: "v", Mounts: []v1.Mount{{Source: "/srv/x/", Target: "/x"}, {Source: "/etc", Target: "/y"}}}
	intent.CheckContainer(&f, policy, "mc", &spec)
	require.Equal(t, "mounts[0].source: is 100% a link; mounts[1].source: must be below a directory of docker.allowed_mounts", f.Err().Error())
	require.Equal(t, []string{"/srv/x"}, checked)
}

// TestWhatTheEngineLacks: each request that needs it is refused with its field.
func TestWhatTheEngineLacks(t *testing.T) {
	no := false
	policy := intent.Policy{Engine: "kubernetes",
		Lacks: []string{"swap", "pids", "no_oom_kill", "io_weight", "cpuset", "host_mounts", "user_names", "held_images", "any_env"}}
	spec := func() *v1.ContainerSpec {
		return &v1.ContainerSpec{Image: "busybox:1", VolumeID: "v", User: "1000:1000", Limits: v1.Limits{Memory: 64 << 20, CPU: 1}}
	}
	var none v1.FieldErrors
	intent.CheckContainer(&none, policy, "mc", spec())
	require.NoError(t, none.Err())
	for field, change := range map[string]func(*v1.ContainerSpec){
		"limits.swap":      func(s *v1.ContainerSpec) { s.Limits.Swap = v1.UnlimitedSwap },
		"limits.pids":      func(s *v1.ContainerSpec) { s.Limits.Pids = 100 },
		"limits.oom_kill":  func(s *v1.ContainerSpec) { s.Limits.OOMKill = &no },
		"limits.io_weight": func(s *v1.ContainerSpec) { s.Limits.IOWeight = 100 },
		"cpuset":           func(s *v1.ContainerSpec) { s.Cpuset = "0" },
		"mounts":           func(s *v1.ContainerSpec) { s.Mounts = []v1.Mount{{Source: "/srv", Target: "/x"}} },
		"user":             func(s *v1.ContainerSpec) { s.User = "1000:players" },
		"install_user":     func(s *v1.ContainerSpec) { s.InstallUser = "installer" },
		"pull_policy":      func(s *v1.ContainerSpec) { s.PullPolicy = v1.PullNever },
		"env":              func(s *v1.ContainerSpec) { s.Env = map[string]string{"Ü": "1"} },
	} {
		var f v1.FieldErrors
		s := spec()
		change(s)
		intent.CheckContainer(&f, policy, "mc", s)
		require.Len(t, f, 1, field)
		require.Equal(t, field, f[0].Key)
		require.Contains(t, f[0].Message, ": the engine kubernetes lacks ")
		f = nil
		intent.CheckContainer(&f, intent.Policy{AllowedMounts: []string{"/srv"}}, "mc", s)
		require.NoError(t, f.Err(), "Docker lacks nothing")
	}
}

// TestPlacementIsBounded: by what the operator permits, whose defaults complete it. Docker has no machines to choose from.
func TestPlacementIsBounded(t *testing.T) {
	policy := intent.Policy{Engine: "kubernetes", Placement: v1.PlacementPolicy{
		Allowed: []string{"node_selector:pool=*", "toleration:spot=*"}, Default: []string{"priority_class:free"}}}
	check := func(p intent.Policy, place v1.Placement) (v1.Placement, error) {
		var f v1.FieldErrors
		s := v1.ContainerSpec{Image: "busybox:1", VolumeID: "v", Placement: place}
		intent.CheckContainer(&f, p, "mc", &s)
		return s.Placement, f.Err()
	}
	got, err := check(policy, v1.Placement{NodeSelector: map[string]string{"pool": "big"}})
	require.NoError(t, err)
	require.Equal(t, v1.Placement{NodeSelector: map[string]string{"pool": "big"}, PriorityClass: "free"}, got)
	_, err = check(policy, got)
	require.NoError(t, err, "an answer can be sent again")
	_, err = check(policy, v1.Placement{NodeSelector: map[string]string{"zone": "a"}, RuntimeClass: "kata", Tolerations: []v1.Toleration{{Key: "spot", Effect: "Never"}}})
	require.EqualError(t, err, "placement.node_selector: must be permitted by kubernetes.allowed_placement, which lacks node_selector:zone=a; "+
		"placement.runtime_class: must be permitted by kubernetes.allowed_placement, which lacks runtime_class:kata; "+
		"placement.tolerations: must have the effect NoSchedule, PreferNoSchedule or NoExecute, or none")
	_, err = check(policy, v1.Placement{Tolerations: make([]v1.Toleration, 33)})
	require.ErrorContains(t, err, "at most 32 labels and 32 tolerations")

	policy.Engine, policy.Lacks = "docker", []string{"placement"}
	got, err = check(policy, v1.Placement{})
	require.NoError(t, err)
	require.Equal(t, v1.Placement{}, got)
	_, err = check(policy, v1.Placement{RuntimeClass: "gvisor"})
	require.EqualError(t, err, "placement: must be left out: the engine docker lacks placement")
}

func TestAllErrorsAtOnce(t *testing.T) {
	var f v1.FieldErrors
	intent.CheckContainer(&f, intent.Policy{}, "-", &v1.ContainerSpec{Ports: []v1.Port{{}}})
	require.Equal(t, "internal_id: must be 1 to 63 letters, digits, _, . or -, and begin with a letter or digit; "+
		"image: is required; volume_id: is required; ports[0].ip: must be an IPv4 or IPv6 address; "+
		"ports[0].port: must be between 1 and 65535; ports[0].protocol: must be tcp or udp", f.Err().Error())
}

func TestDeleteReleasesClaimsAndForcesPowerOff(t *testing.T) {
	w := newWorld(t)
	w.create("mc", 1000)
	w.installed("mc")
	require.NoError(t, intent.Power(w.store, "mc", intent.Start))
	require.NoError(t, intent.DeleteContainer(w.store, "mc"))

	o := w.get("mc")
	require.True(t, o.Meta.Deleted)
	require.Equal(t, v1.PowerOff, o.Spec.Power)
	require.Equal(t, o.Spec.RunGeneration, o.Spec.KillGeneration)
	require.Empty(t, w.port(1000, "tcp").Container)
	require.False(t, w.port(1000, "tcp").InUse)
	w.unchanged(func() { require.NoError(t, intent.DeleteContainer(w.store, "mc")) })
	require.ErrorContains(t, intent.CreateContainer(w.store, intent.Policy{}, "mc", w.spec()), "Container is being deleted: create it again once")
	w.create("next", 1000)
	require.NoError(t, intent.DeleteContainer(w.store, "mc"))
	require.Equal(t, "next", string(w.port(1000, "tcp").Container), "a repeated delete takes nothing from others")
	require.Equal(t, v1.ErrContainerNotFound, intent.DeleteContainer(w.store, "none"))
}

func TestTakeBackSparesOthers(t *testing.T) {
	w := newWorld(t)
	w.create("mc", 1000)
	judged := w.get("mc")
	other := judged
	other.Meta.UID = "another"
	w.unchanged(func() {
		taken, err := intent.TakeBackContainer(w.store, other)
		require.NoError(t, err)
		require.False(t, taken, "made again since")
	})
	other = judged
	other.Spec.Image = "missing"
	w.unchanged(func() {
		taken, err := intent.TakeBackContainer(w.store, other)
		require.NoError(t, err)
		require.False(t, taken, "has another image now")
	})
	require.NoError(t, intent.Power(w.store, "mc", intent.Start))
	taken, err := intent.TakeBackContainer(w.store, judged)
	require.NoError(t, err)
	require.True(t, taken, "a requested start changes nothing about its image")
	require.True(t, w.get("mc").Meta.Deleted)
	require.Empty(t, w.port(1000, "tcp").Container)
	other.Meta.ID = "none"
	taken, err = intent.TakeBackContainer(w.store, other)
	require.NoError(t, err)
	require.True(t, taken, "somebody deleted it")
}

func TestVerbsOnADeletedContainer(t *testing.T) {
	w := newWorld(t)
	w.create("mc", 1000)
	require.NoError(t, intent.DeleteContainer(w.store, "mc"))
	for name, verb := range verbs(w) {
		w.unchanged(func() {
			require.ErrorIs(t, verb("mc"), &v1.Error{Code: v1.ContainerDeleting}, name)
			require.Equal(t, v1.ErrContainerNotFound, verb("none"), name)
		})
	}
}

func verbs(w *world) map[string]func(string) error {
	return map[string]func(string) error{
		"start":     func(id string) error { return intent.Power(w.store, id, intent.Start) },
		"stop":      func(id string) error { return intent.Power(w.store, id, intent.Stop) },
		"kill":      func(id string) error { return intent.Power(w.store, id, intent.Kill) },
		"restart":   func(id string) error { return intent.Power(w.store, id, intent.Restart) },
		"reinstall": func(id string) error { return intent.ReinstallContainer(w.store, id, v1.ReinstallRequest{}) },
		"rebind":    func(id string) error { return intent.RebindNetwork(w.store, id, tcp(1001)) },
	}
}

func TestDeleteWithVolume(t *testing.T) {
	w := newWorld(t)
	w.create("a")
	w.create("b")
	require.EqualError(t, intent.DeleteVolume(w.store, w.volume), "Volume is in use by container a")
	require.EqualError(t, intent.DeleteContainerAndVolume(w.store, "a"), "Volume is in use by container b")
	require.False(t, w.get("a").Meta.Deleted)
	require.NoError(t, intent.DeleteContainer(w.store, "b"))
	require.EqualError(t, intent.DeleteContainerAndVolume(w.store, "a"), "Volume is in use by container b", "until it is gone")
	require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Purge(tx, "b") }))
	require.NoError(t, intent.DeleteContainerAndVolume(w.store, "a"))
	o, err := store.Volumes.Get(w.store.Read(), w.volume)
	require.True(t, o.Meta.Deleted)
	require.NoError(t, err)
	require.NoError(t, intent.DeleteContainerAndVolume(w.store, "a"), "again")
}
