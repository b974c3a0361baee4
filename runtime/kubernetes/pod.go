package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	core1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"berth/runtime"
	"berth/runtime/keeper"
)

// capabilities are those that root has inside a container; package docker explains the choice.
var (
	capabilities          = []core1.Capability{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"}
	installerCapabilities = append(slices.Clone(capabilities), "AUDIT_WRITE", "FSETID", "SETFCAP", "SYS_CHROOT")
)

const (
	volumesName  = "volumes" // of the pod's volume that is the claim
	ownName      = "volume"  // of the pod's volume that is the claim of one volume
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
func (e *Engine) build(s runtime.Spec, image resolved, folder string) (*core1.Pod, error) {
	r := record{
		ID: s.Name.ID, Role: string(s.Name.Role), ContainerID: e.newContainerID(s.Name), ImageID: image.digest, SpecHash: s.SpecHash,
		Image: image.ref, Registry: image.auth.Host,
		Revision: s.Revision, Incarnation: s.Incarnation, Live: rounded(s.Live),
		StopSignal: cmp.Or(s.StopSignal, image.config.StopSignal), StopTimeout: wholeSeconds(s.StopTimeout),
		User: cmp.Or(s.User, image.config.User), Labels: s.Labels, Placement: s.Placement, Ports: s.Ports,
	}
	r.Mounts = sources(s.Mounts)
	if e.cfg.Balancer != nil {
		s.Ports = nil
	}
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	if len(s.Command) == 0 {
		s.Command, s.Entrypoint = image.config.Cmd, true
	}
	if s.Entrypoint {
		s.Command = slices.Concat(image.config.Entrypoint, s.Command)
	}
	if len(s.Command) == 0 {
		return nil, fmt.Errorf("%w: the image has no command of its own", runtime.ErrBadCommand)
	}
	if s.Workdir, err = s.WorkdirWith(image.config.WorkingDir); err != nil {
		return nil, err
	}
	server, err := e.container(s, image, folder)
	if err != nil {
		return nil, err
	}
	grace := int64(defaultGrace)
	if s.StopTimeout > 0 {
		grace = int64(wholeSeconds(s.StopTimeout).Seconds())
	}
	pod := e.podAround(server, r, text)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	pod.Spec.SchedulingGates = []core1.PodSchedulingGate{{Name: gate}}
	pod.Spec.Volumes = []core1.Volume{claimVolume(volumesName, e.storageOf(r.Mounts).claim)}
	for _, m := range s.Mounts {
		if m.Claim != "" {
			pod.Spec.Volumes = append(pod.Spec.Volumes, claimVolume(ownName, m.Claim))
		}
	}
	// A whole name could replace one of the Internet.
	pod.Spec.Hostname, _, _ = strings.Cut(strings.ToLower(s.Hostname), ".")
	e.memoryVolumes(pod, s)
	if s.MachineID != "" && !s.ReadOnlyRoot {
		identify(pod, s.MachineID)
	}
	return pod, nil
}

// claimVolume returns the volume of a pod that is a claim.
func claimVolume(name, claim string) core1.Volume {
	return core1.Volume{Name: name, VolumeSource: core1.VolumeSource{
		PersistentVolumeClaim: &core1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

// podAround returns a pod with a container, and with what all pods have alike. text is the record's.
func (e *Engine) podAround(server core1.Container, r record, text string) *core1.Pod {
	no, name := false, e.podName(r.name())
	pod := &core1.Pod{
		ObjectMeta: meta.ObjectMeta{
			Name: name, Labels: e.labels(r),
			Annotations: map[string]string{annotationRecord: text}, Finalizers: []string{finalizer},
		},
		Spec: core1.PodSpec{
			RestartPolicy:                core1.RestartPolicyNever,
			AutomountServiceAccountToken: &no,
			EnableServiceLinks:           &no,
			DNSPolicy:                    core1.DNSDefault, // servers ask for names of the Internet
			SecurityContext: &core1.PodSecurityContext{
				SeccompProfile: &core1.SeccompProfile{Type: core1.SeccompProfileTypeRuntimeDefault},
			},
			Tolerations: tolerations(),
			Containers:  []core1.Container{server},
		},
	}
	e.place(pod, r.Placement)
	if runtime.Role(r.Role) == runtime.Server { // an installation would begin anew
		pod.Annotations[annotationEvict] = "true"
	}
	if r.Registry != "" {
		pod.Spec.ImagePullSecrets = []core1.LocalObjectReference{{Name: name}}
	}
	return pod
}

// place bounds the nodes of a pod. Those of a store are spread over them where there is room.
func (e *Engine) place(pod *core1.Pod, p runtime.Placement) {
	selector := maps.Clone(p.NodeSelector)
	if selector == nil {
		selector = map[string]string{}
	}
	selector[core1.LabelOSStable], selector[core1.LabelArchStable] = "linux", goruntime.GOARCH // the keeper's
	pod.Spec.NodeSelector = selector
	for _, t := range p.Tolerations {
		one := core1.Toleration{Key: t.Key, Operator: core1.TolerationOpEqual, Value: t.Value, Effect: core1.TaintEffect(t.Effect)}
		if t.Value == "" {
			one.Operator = core1.TolerationOpExists
		}
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, one)
	}
	if p.RuntimeClass != "" {
		pod.Spec.RuntimeClassName = &p.RuntimeClass
	}
	pod.Spec.PriorityClassName = p.PriorityClass
	pod.Spec.TopologySpreadConstraints = []core1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: core1.LabelHostname, WhenUnsatisfiable: core1.ScheduleAnyway,
		LabelSelector: &meta.LabelSelector{MatchLabels: map[string]string{labelStore: hash(e.cfg.StoreID)}},
	}}
}

// labels returns the labels of a container's pods. The id and the client's labels are for people and their
// tools: what is no name or value of a label is in the record only.
func (e *Engine) labels(r record) map[string]string {
	all := map[string]string{}
	for key, value := range r.Labels {
		all[labelsOfClient+key] = value
	}
	all[labelID] = r.ID
	maps.DeleteFunc(all, func(key, value string) bool {
		return len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0
	})
	all[labelStore], all[labelContainer], all[labelRole] = hash(e.cfg.StoreID), e.podName(r.name()), r.Role
	return all
}

// serverOf returns the server's container of a pod: others may have added more.
func serverOf(pod *core1.Pod) *core1.Container {
	return &pod.Spec.Containers[serverIndex(pod)]
}

func serverIndex(pod *core1.Pod) int {
	return max(0, slices.IndexFunc(pod.Spec.Containers, func(c core1.Container) bool { return c.Name == serverContainer }))
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
	server.VolumeMounts = append(server.VolumeMounts,
		core1.VolumeMount{Name: name, MountPath: "/etc/machine-id", SubPath: name, ReadOnly: true})
}

// tolerations keep a pod on a node whose link is cut: with the default, a short cut would
// end the server after the link is back.
func tolerations() []core1.Toleration {
	return []core1.Toleration{
		{Key: core1.TaintNodeUnreachable, Operator: core1.TolerationOpExists, Effect: core1.TaintEffectNoExecute},
		{Key: core1.TaintNodeNotReady, Operator: core1.TolerationOpExists, Effect: core1.TaintEffectNoExecute},
	}
}

func (e *Engine) container(s runtime.Spec, image resolved, folder string) (core1.Container, error) {
	server := core1.Container{
		Name:            serverContainer,
		Image:           image.ref,
		ImagePullPolicy: core1.PullIfNotPresent,
		Command:         literals(keeper.Command(s, s.StopSignal)),
		WorkingDir:      s.Workdir,
		TTY:             s.TTY,
		Stdin:           s.Name.Role == runtime.Server, // for the console; it stays open when a writer disconnects
		Resources:       e.resources(s.Live),
		SecurityContext: confined(s.Name.Role, s.ReadOnlyRoot),
		VolumeMounts:    []core1.VolumeMount{{Name: volumesName, MountPath: keeper.Dir, SubPath: folder, ReadOnly: true}},
	}
	if s.Name.Role == runtime.Server {
		server.Lifecycle = &core1.Lifecycle{PreStop: &core1.LifecycleHandler{Exec: &core1.ExecAction{Command: keeper.Hold(s)}}}
	}
	for _, v := range s.Env {
		name, value, _ := strings.Cut(v, "=")
		server.Env = append(server.Env, core1.EnvVar{Name: name, Value: literal(value)})
	}
	at := e.storageOf(sources(s.Mounts))
	for _, m := range s.Mounts {
		mount := core1.VolumeMount{Name: ownName, MountPath: m.Target, ReadOnly: m.ReadOnly}
		if m.Claim == "" {
			path, err := at.subPath(m.Source)
			if err != nil {
				return server, err
			}
			mount.Name, mount.SubPath = volumesName, path
		}
		server.VolumeMounts = append(server.VolumeMounts, mount)
	}
	for _, p := range s.Ports {
		port := core1.ContainerPort{HostPort: int32(p.Port), ContainerPort: int32(p.ContainerPort), HostIP: p.IP,
			Protocol: core1.Protocol(strings.ToUpper(p.Protocol))}
		server.Ports = append(server.Ports, port)
	}
	return server, setUser(server.SecurityContext, s.User)
}

// confined returns the hardening of every container of a role.
func confined(role runtime.Role, readOnlyRoot bool) *core1.SecurityContext {
	no, add := false, capabilities
	if role == runtime.Install {
		add = installerCapabilities
	}
	return &core1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		ReadOnlyRootFilesystem:   &readOnlyRoot,
		Capabilities:             &core1.Capabilities{Drop: []core1.Capability{"ALL"}, Add: add},
	}
}

// literals keeps Kubernetes from expanding $(NAME) in texts.
func literals(texts []string) (list []string) {
	for _, text := range texts {
		list = append(list, literal(text))
	}
	return list
}

// literal keeps Kubernetes from expanding $(NAME) in a text.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// setUser sets the user of a container. Kubernetes takes numbers only, and root has one in every image.
func setUser(c *core1.SecurityContext, user string) error {
	if user == "" {
		return nil
	}
	uid, gid, grouped := strings.Cut(user, ":")
	number, err := accountNumber(uid)
	if err != nil {
		return fmt.Errorf("%w: %q needs the number of the user", lacking(runtime.CanNameUsers), user)
	}
	c.RunAsUser = &number
	if !grouped {
		return nil
	}
	group, err := accountNumber(gid)
	if err != nil {
		return fmt.Errorf("%w: %q needs the number of the group", lacking(runtime.CanNameUsers), user)
	}
	c.RunAsGroup = &group
	return nil
}

// accountNumber returns the number of a user or a group.
func accountNumber(name string) (int64, error) {
	if name == "root" {
		return 0, nil
	}
	return strconv.ParseInt(name, 10, 64)
}

// storage is a claim, and the directory at which berth has mounted it.
type storage struct{ claim, dir string }

// storageOf returns the one claim of a pod that mounts some directories of berth's host. It holds the keeper too: a
// pod whose claim is not what berth has mounted has no keeper, and does not start with an empty volume.
func (e *Engine) storageOf(sources []string) storage {
	if len(sources) > 0 {
		dir := filepath.Dir(sources[0])
		if claim := e.cfg.Claims[dir]; claim != "" {
			return storage{claim, dir}
		}
	}
	return storage{e.cfg.Claim, e.cfg.Volumes}
}

// subPath returns the path in the claim of a directory of berth's host.
func (s storage) subPath(source string) (string, error) {
	path, err := filepath.Rel(s.dir, source)
	if err != nil || !filepath.IsLocal(path) || path == "." {
		return "", fmt.Errorf("%w: %s is not in the directory of the volumes, %s", lacking(runtime.CanMountHost), source, s.dir)
	}
	return path, nil
}

// sources returns the directories of berth's host that a pod mounts.
func sources(mounts []runtime.Mount) (list []string) {
	for _, m := range mounts {
		list = append(list, m.Source)
	}
	return list
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

// successor returns the pod of the next run: the pod as it was created, with the limits and the record of
// now. Of the pod that the cluster returns it takes only what berth has set: others add containers, volumes,
// priorities and more to pods, which a new pod may not have, or gets again. started is the time of the
// start; zero: with the gate.
func (e *Engine) successor(pod *core1.Pod, r record, started time.Time) (*core1.Pod, error) {
	if ended(pod) {
		if last := lastRun(pod); last != nil {
			r.Last = last
		}
	}
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	next := e.podAround(e.own(pod, r), r, text)
	next.Spec.TerminationGracePeriodSeconds, next.Spec.Hostname = pod.Spec.TerminationGracePeriodSeconds, pod.Spec.Hostname
	for _, v := range pod.Spec.Volumes {
		if ownVolume(v.Name) {
			next.Spec.Volumes = append(next.Spec.Volumes, v)
		}
	}
	if id := pod.Annotations[annotationID]; id != "" {
		next.Annotations[annotationID] = id
	}
	if started.IsZero() {
		next.Spec.SchedulingGates = []core1.PodSchedulingGate{{Name: gate}}
	} else {
		next.Annotations[annotationStart] = started.UTC().Format(time.RFC3339Nano)
	}
	return next, nil
}

// ownVolume reports whether berth has added the volume of a name to a pod.
func ownVolume(name string) bool {
	return slices.Contains([]string{volumesName, ownName, "machine-id", "shm", "tmp", "run"}, name)
}

// own returns the server's container of a pod as berth has set it, with the limits of now.
func (e *Engine) own(pod *core1.Pod, r record) core1.Container {
	was := serverOf(pod)
	next := core1.Container{
		Name: serverContainer, Image: cmp.Or(r.Image, was.Image), ImagePullPolicy: core1.PullIfNotPresent, Command: was.Command,
		WorkingDir: was.WorkingDir, TTY: was.TTY, Stdin: was.Stdin, Ports: slices.Clone(was.Ports),
		Resources: keepStorage(e.resources(r.Live), was.Resources),
	}
	if hooked(was) {
		next.Lifecycle = &core1.Lifecycle{PreStop: was.Lifecycle.PreStop}
	}
	for _, v := range was.Env {
		if v.ValueFrom == nil {
			next.Env = append(next.Env, v)
		}
	}
	for _, m := range was.VolumeMounts {
		if m.MountPath == keeper.Dir {
			m.SubPath = e.keeper.Existing(e.storageOf(r.Mounts).dir, m.SubPath)
		}
		if ownVolume(m.Name) {
			next.VolumeMounts = append(next.VolumeMounts, m)
		}
	}
	context := cmp.Or(was.SecurityContext, &core1.SecurityContext{})
	next.SecurityContext = confined(runtime.Role(r.Role), context.ReadOnlyRootFilesystem != nil && *context.ReadOnlyRootFilesystem)
	next.SecurityContext.RunAsUser, next.SecurityContext.RunAsGroup = context.RunAsUser, context.RunAsGroup
	return next
}

// hooked reports whether a container has the hook of the keeper. That of a pod which an older berth has created
// knows none.
func hooked(c *core1.Container) bool {
	return c.Lifecycle != nil && c.Lifecycle.PreStop != nil && c.Lifecycle.PreStop.Exec != nil &&
		slices.Contains(c.Lifecycle.PreStop.Exec.Command, keeper.Path)
}

// keepStorage returns resources with the limit of the ephemeral storage of others: it is that of the
// creation.
func keepStorage(r, of core1.ResourceRequirements) core1.ResourceRequirements {
	delete(r.Limits, core1.ResourceEphemeralStorage)
	delete(r.Requests, core1.ResourceEphemeralStorage)
	if limit, has := of.Limits[core1.ResourceEphemeralStorage]; has {
		r.Limits[core1.ResourceEphemeralStorage], r.Requests[core1.ResourceEphemeralStorage] = limit, of.Requests[core1.ResourceEphemeralStorage]
	}
	return r
}
