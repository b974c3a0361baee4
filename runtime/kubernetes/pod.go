package kubernetes

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	core1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth/runtime"
)

// capabilities are those that root has inside a container; package docker explains the choice.
var capabilities = []core1.Capability{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"}

const (
	keeperDir    = "/.berth" // where a container sees the keeper
	keeperPath   = keeperDir + "/keeper"
	volumesName  = "volumes" // of the pod's volume that is the claim
	defaultGrace = 10        // seconds between the stop signal and SIGKILL
	minMemory    = 6 << 20   // bytes; less is not enough for a runtime to start a process
)

// requireAble returns ErrInvalid for a spec that needs what the engine lacks.
func requireAble(s runtime.Spec) error {
	if s.IOWeight != 0 {
		return lacking(runtime.CanIOWeight)
	}
	return requireLive(s.Live)
}

func requireLive(l runtime.Live) error {
	switch {
	case l.Swap != 0:
		return lacking(runtime.CanSwap)
	case l.Pids != 0:
		return lacking(runtime.CanPids)
	case l.Cpuset != "":
		return lacking(runtime.CanCpuset)
	case l.NoOOMKill:
		return lacking(runtime.CanNoOOMKill)
	case l.Memory != 0 && l.Memory < minMemory:
		return fmt.Errorf("%w: the memory limit must be at least %d bytes", runtime.ErrInvalid, minMemory)
	}
	return nil
}

func lacking(c runtime.Capability) error {
	return fmt.Errorf("%w: the engine kubernetes lacks %s", runtime.ErrInvalid, c)
}

// build returns the pod of a container's first run, with the gate. It alone decides what a
// container may do, in the same way for both roles.
func (e *Engine) build(s runtime.Spec, image resolved, keeper string) (*core1.Pod, error) {
	r := record{
		ID: s.Name.ID, Role: string(s.Name.Role), ContainerID: e.newContainerID(s.Name), ImageID: image.digest, SpecHash: s.SpecHash,
		Revision: s.Revision, Incarnation: s.Incarnation, Live: rounded(s.Live), StopSignal: cmp.Or(s.StopSignal, image.config.StopSignal), StopTimeout: wholeSeconds(s.StopTimeout),
		SignalGroup: s.SignalGroup, User: cmp.Or(s.User, image.config.User), Labels: s.Labels,
	}
	for _, m := range s.Mounts {
		r.Mounts = append(r.Mounts, m.Source)
	}
	if e.cfg.Balancer != nil {
		r.Ports, s.Ports = s.Ports, nil
	}
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	if len(s.Command) == 0 {
		s.Command = append(slices.Clone(image.config.Entrypoint), image.config.Cmd...)
	}
	if len(s.Command) == 0 {
		return nil, fmt.Errorf("%w: the image has no command of its own", runtime.ErrBadCommand)
	}
	server, err := e.container(s, image, keeper)
	if err != nil {
		return nil, err
	}
	no := false
	grace := int64(defaultGrace)
	if s.StopTimeout > 0 {
		grace = int64(wholeSeconds(s.StopTimeout).Seconds())
	}
	pod := &core1.Pod{
		ObjectMeta: meta.ObjectMeta{
			Name: e.podName(s.Name), Labels: map[string]string{labelStore: hash(e.cfg.StoreID), labelContainer: e.podName(s.Name)},
			Annotations: map[string]string{annotationRecord: text}, Finalizers: []string{finalizer},
		},
		Spec: core1.PodSpec{
			RestartPolicy:                 core1.RestartPolicyNever,
			SchedulingGates:               []core1.PodSchedulingGate{{Name: gate}},
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			TerminationGracePeriodSeconds: &grace,
			DNSPolicy:                     core1.DNSDefault, // servers ask for names of the Internet
			SecurityContext:               &core1.PodSecurityContext{SeccompProfile: &core1.SeccompProfile{Type: core1.SeccompProfileTypeRuntimeDefault}},
			Tolerations:                   tolerations(),
			Containers:                    []core1.Container{server},
			Volumes: []core1.Volume{{Name: volumesName, VolumeSource: core1.VolumeSource{
				PersistentVolumeClaim: &core1.PersistentVolumeClaimVolumeSource{ClaimName: e.cfg.Claim},
			}}},
		},
	}
	// A whole name could replace one of the Internet.
	pod.Spec.Hostname, _, _ = strings.Cut(s.Hostname, ".")
	if image.auth != (runtime.Auth{}) {
		pod.Spec.ImagePullSecrets = []core1.LocalObjectReference{{Name: pod.Name}}
	}
	e.memoryVolumes(pod, s)
	if s.MachineID != "" && !s.ReadOnlyRoot {
		identify(pod, s.MachineID)
	}
	return pod, nil
}

// wholeSeconds rounds up, as runtime.Spec has it.
func wholeSeconds(d time.Duration) time.Duration {
	return time.Duration(math.Ceil(d.Seconds())) * time.Second
}

// identify gives a pod the file /etc/machine-id.
func identify(pod *core1.Pod, id string) {
	const name = "machine-id"
	pod.Annotations[annotationID] = id
	field := &core1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + annotationID + "']"}
	pod.Spec.Volumes = append(pod.Spec.Volumes, core1.Volume{Name: name, VolumeSource: core1.VolumeSource{
		DownwardAPI: &core1.DownwardAPIVolumeSource{Items: []core1.DownwardAPIVolumeFile{{Path: name, FieldRef: field}}},
	}})
	server := &pod.Spec.Containers[0]
	server.VolumeMounts = append(server.VolumeMounts, core1.VolumeMount{Name: name, MountPath: "/etc/machine-id", SubPath: name, ReadOnly: true})
}

// tolerations keep a pod on a node whose link is cut: with the default, a short cut would
// end the server after the link is back.
func tolerations() []core1.Toleration {
	return []core1.Toleration{
		{Key: core1.TaintNodeUnreachable, Operator: core1.TolerationOpExists, Effect: core1.TaintEffectNoExecute},
		{Key: core1.TaintNodeNotReady, Operator: core1.TolerationOpExists, Effect: core1.TaintEffectNoExecute},
	}
}

func (e *Engine) container(s runtime.Spec, image resolved, keeper string) (core1.Container, error) {
	no := false
	server := core1.Container{
		Name:            serverContainer,
		Image:           image.ref,
		ImagePullPolicy: core1.PullIfNotPresent,
		Command:         command(s),
		WorkingDir:      s.Workdir,
		TTY:             s.TTY,
		Stdin:           s.Name.Role == runtime.Server, // for the console; it stays open when a writer disconnects
		Resources:       e.resources(s.Live),
		SecurityContext: &core1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			ReadOnlyRootFilesystem:   &s.ReadOnlyRoot,
			Capabilities:             &core1.Capabilities{Drop: []core1.Capability{"ALL"}, Add: capabilities},
		},
		VolumeMounts: []core1.VolumeMount{{Name: volumesName, MountPath: keeperDir, SubPath: keeper, ReadOnly: true}},
	}
	for _, v := range s.Env {
		name, value, _ := strings.Cut(v, "=")
		server.Env = append(server.Env, core1.EnvVar{Name: name, Value: literal(value)})
	}
	for _, m := range s.Mounts {
		path, err := e.subPath(m.Source)
		if err != nil {
			return server, err
		}
		server.VolumeMounts = append(server.VolumeMounts, core1.VolumeMount{Name: volumesName, MountPath: m.Target, SubPath: path, ReadOnly: m.ReadOnly})
	}
	for _, p := range s.Ports {
		port := core1.ContainerPort{HostPort: int32(p.Port), ContainerPort: int32(p.ContainerPort), HostIP: p.IP, Protocol: core1.Protocol(strings.ToUpper(p.Protocol))}
		server.Ports = append(server.Ports, port)
	}
	return server, setUser(server.SecurityContext, s.User)
}

// command returns the keeper with the spec's command.
func command(s runtime.Spec) []string {
	list := []string{keeperPath, "run"}
	if s.StopSignal != "" {
		list = append(list, "-stop", s.StopSignal)
	}
	if s.SignalGroup {
		list = append(list, "-group")
	}
	if s.Home != "" {
		list = append(list, "-home", s.Home)
	}
	list = append(list, "--")
	for _, arg := range s.Command {
		list = append(list, literal(arg))
	}
	return list
}

// literal keeps Kubernetes from expanding $(NAME) in a text.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// setUser sets the user of a container. Kubernetes takes numbers only.
func setUser(c *core1.SecurityContext, user string) error {
	if user == "" {
		return nil
	}
	uid, gid, grouped := strings.Cut(user, ":")
	number, err := strconv.ParseInt(uid, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %q needs the number of the user", lacking(runtime.CanNameUsers), user)
	}
	c.RunAsUser = &number
	if !grouped {
		return nil
	}
	group, err := strconv.ParseInt(gid, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %q needs the number of the group", lacking(runtime.CanNameUsers), user)
	}
	c.RunAsGroup = &group
	return nil
}

// subPath returns the path in the claim of a directory of the host.
func (e *Engine) subPath(source string) (string, error) {
	path, err := filepath.Rel(e.cfg.Volumes, source)
	if err != nil || !filepath.IsLocal(path) || path == "." {
		return "", fmt.Errorf("%w: %s is not in the directory of the volumes, %s", lacking(runtime.CanMountHost), source, e.cfg.Volumes)
	}
	return path, nil
}

// rounded returns limits with billionths of a processor, as Docker counts them.
func rounded(l runtime.Live) runtime.Live {
	l.CPU = math.Round(l.CPU*1e9) / 1e9
	return l
}

// resources returns limits, and the requests that follow from them. A request that is not
// below its limit would give the pod another quality of service, which a resize may not change.
func (e *Engine) resources(l runtime.Live) core1.ResourceRequirements {
	// A pod without a request would be the first that a node evicts.
	requests := core1.ResourceList{core1.ResourceMemory: *resource.NewQuantity(minMemory, resource.BinarySI)}
	limits := core1.ResourceList{}
	if l.Memory > 0 {
		limits[core1.ResourceMemory] = *resource.NewQuantity(l.Memory, resource.BinarySI)
		requests[core1.ResourceMemory] = *resource.NewQuantity(int64(float64(l.Memory)*e.cfg.RequestsShare), resource.BinarySI)
	}
	if l.CPU > 0 {
		milli := max(int64(math.Ceil(l.CPU*1000-1e-6)), 1)
		limits[core1.ResourceCPU] = *resource.NewMilliQuantity(milli, resource.DecimalSI)
		requests[core1.ResourceCPU] = *resource.NewMilliQuantity(int64(float64(milli)*e.cfg.RequestsShare), resource.DecimalSI)
	}
	if e.cfg.RootLimit != nil && e.cfg.RootLimit() > 0 { // a node ends a pod that writes more
		limits[core1.ResourceEphemeralStorage] = *resource.NewQuantity(e.cfg.RootLimit(), resource.BinarySI)
		requests[core1.ResourceEphemeralStorage] = resource.Quantity{} // otherwise it would be the limit
	}
	return core1.ResourceRequirements{Limits: limits, Requests: requests}
}

// memoryVolumes adds file systems in memory: /dev/shm of a certain size, and what is writable
// beside a read-only root.
func (e *Engine) memoryVolumes(pod *core1.Pod, s runtime.Spec) {
	add := func(name, path string, size int64) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, core1.Volume{Name: name, VolumeSource: core1.VolumeSource{
			EmptyDir: &core1.EmptyDirVolumeSource{Medium: core1.StorageMediumMemory, SizeLimit: resource.NewQuantity(size, resource.BinarySI)},
		}})
		server := &pod.Spec.Containers[0]
		server.VolumeMounts = append(server.VolumeMounts, core1.VolumeMount{Name: name, MountPath: path})
	}
	if s.ShmSize > 0 {
		add("shm", "/dev/shm", s.ShmSize)
	}
	if !s.ReadOnlyRoot {
		return
	}
	for _, dir := range []string{"tmp", "run"} {
		mounted := false
		for _, m := range s.Mounts {
			mounted = mounted || m.Target == "/"+dir
		}
		if !mounted {
			add(dir, "/"+dir, e.cfg.TmpSize)
		}
	}
}

// successor returns the pod of the next run: the pod as it was created, with the record of
// the run that ended. started is the time of the start; zero: with the gate.
func successor(pod *core1.Pod, r record, started time.Time) (*core1.Pod, error) {
	if ended(pod) {
		if last := lastRun(pod); last != nil {
			r.Last = last
		}
	}
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	next := &core1.Pod{
		ObjectMeta: meta.ObjectMeta{
			Name: pod.Name, Labels: pod.Labels, Annotations: map[string]string{annotationRecord: text}, Finalizers: []string{finalizer},
		},
		Spec: *pod.Spec.DeepCopy(),
	}
	if id := pod.Annotations[annotationID]; id != "" {
		next.Annotations[annotationID] = id
	}
	next.Spec.NodeName, next.Spec.SchedulingGates = "", nil
	if started.IsZero() {
		next.Spec.SchedulingGates = []core1.PodSchedulingGate{{Name: gate}}
	} else {
		next.Annotations[annotationStart] = started.UTC().Format(time.RFC3339Nano)
	}
	return next, nil
}
