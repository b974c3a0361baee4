package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	core1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth/runtime"
	"berth/runtime/keeper"
)

// startLimit is how long Start waits for a container to run. A pull takes longer, and a kill
// waits as long as that.
const startLimit = 5 * time.Second

// Start starts a container and waits until it runs or has exited. It returns ErrStarting if
// that takes longer than startLimit: the start continues. Another Start does not wait: it
// returns how far the start is, and Watch reports when that changes.
func (e *Engine) Start(ctx context.Context, n runtime.Name) error {
	return e.do(ctx, startLimit+ending, "start", n.String(), func(ctx context.Context) error {
		return e.retry(ctx, func() error {
			pod, r, err := e.observe(ctx, e.podName(n))
			if err != nil {
				return err
			}
			return e.start(ctx, pod, r)
		})
	})
}

func (e *Engine) start(ctx context.Context, pod *core1.Pod, r record) (err error) {
	switch {
	case running(pod):
		return nil
	case ended(pod) && ran(pod) && e.wasStarting(pod): // the run was shorter than the time since Inspect
		return e.startResult(ctx, pod, r)
	case ended(pod):
		if err := e.prepare(ctx, pod, r); err != nil {
			return err
		}
		if err := awaitTaints(ctx, pod); err != nil {
			return err
		}
		if pod, err = e.replace(ctx, pod, r, time.Now()); err != nil {
			return err
		}
	case gated(pod):
		if err := e.prepare(ctx, pod, r); err != nil {
			return err
		}
		if pod, err = e.ungate(ctx, pod, r); err != nil {
			return err
		}
	default:
		return e.startResult(ctx, pod, r)
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err = e.await(limited, pod, func(now *core1.Pod) (bool, error) {
		if now == nil {
			return false, runtime.ErrNotFound
		}
		pod = now
		return running(now) || ended(now) || startError(now) != nil || unschedulable(now) != "" && now.Status.NominatedNodeName == "", nil
	})
	if err != nil && (ctx.Err() != nil || limited.Err() == nil) {
		return err
	}
	return e.startResult(ctx, pod, r)
}

// ungate starts a pod that was created. It is replaced if its node, what is published there, or its keeper is
// another one since.
func (e *Engine) ungate(ctx context.Context, pod *core1.Pod, r record) (*core1.Pod, error) {
	next := pod.DeepCopy()
	next.Spec.Affinity = nil
	if e.cfg.Balancer == nil {
		if err := e.bindToNode(ctx, next, portsOf(pod, r)); err != nil {
			return nil, err
		}
	}
	gone := func(m core1.VolumeMount) bool {
		return m.MountPath == keeper.Dir && e.keeper.Existing(e.storageOf(r.Mounts).dir, m.SubPath) != m.SubPath
	}
	bound := equality.Semantic.DeepEqual(next.Spec.Affinity, pod.Spec.Affinity) &&
		equality.Semantic.DeepEqual(serverOf(next).Ports, serverOf(pod).Ports)
	if !bound || slices.ContainsFunc(serverOf(pod).VolumeMounts, gone) {
		return e.replace(ctx, pod, r, time.Now())
	}
	return pod, e.patch(ctx, pod, "", operation{Op: "remove", Path: "/spec/schedulingGates"},
		operation{"add", "/metadata/annotations/berth.io~1started", time.Now().UTC().Format(time.RFC3339Nano)})
}

// wasStarting reports whether the start of a pod was in progress when Inspect saw it last.
func (e *Engine) wasStarting(pod *core1.Pod) bool {
	uid, _ := e.starting.Load(pod.Name)
	return uid == pod.UID
}

// startResult returns the result of the start of a pod. A pod that cannot start is replaced by one
// with the gate: otherwise it would start by itself once the cause is gone.
func (e *Engine) startResult(ctx context.Context, pod *core1.Pod, r record) error {
	cause := startError(pod)
	switch {
	case cause != nil:
		return errors.Join(cause, e.takeBack(ctx, pod, r))
	case ended(pod) && !ran(pod):
		// Others delete pods by their name, and so the successor of the one that they mean: the
		// controller of taints does this to the pods of a node that is lost.
		return fmt.Errorf("it was deleted before it ran: %w", errChanged)
	case running(pod) || ended(pod):
		return nil
	}
	if text := unschedulable(pod); text != "" && pod.Status.NominatedNodeName == "" {
		class := runtime.ErrNoRoom
		if strings.Contains(strings.ToLower(text), "persistentvolumeclaim") {
			class = errClaim
		}
		return fmt.Errorf("%w: %w: %s", runtime.ErrStarting, class, text)
	}
	return fmt.Errorf("%w: %s%s", runtime.ErrStarting, waitsFor(pod), e.lastWarning(ctx, pod))
}

// lastWarning returns the last event of a pod on a node that is a warning, for example that a volume cannot be
// mounted: the pod's status does not have it.
func (e *Engine) lastWarning(ctx context.Context, pod *core1.Pod) string {
	if pod.Spec.NodeName == "" || e.connection.Load() == nil {
		return ""
	}
	return e.lastEvent(ctx, "type=Warning,involvedObject.uid="+string(pod.UID))
}

// lastEvent returns the last event that fields select, after a colon; empty: there is none.
func (e *Engine) lastEvent(ctx context.Context, fields string) string {
	options := &meta.ListOptions{FieldSelector: fields, Limit: maxEvents}
	var list core1.EventList
	err := e.api().Get().Namespace(e.cfg.Namespace).Resource("events").VersionedParams(options, e.parameters).Do(ctx).Into(&list)
	if err != nil { // without the permission, the text is shorter
		return ""
	}
	var last core1.Event
	for _, event := range list.Items {
		if last.Message == "" || !event.LastTimestamp.Before(&last.LastTimestamp) {
			last = event
		}
	}
	if last.Message == "" {
		return ""
	}
	return ": " + last.Reason + ": " + last.Message
}

// maxEvents bounds the events of a pod that are read: the cluster counts those that repeat in one.
const maxEvents = 50

// unschedulable returns why the scheduler has found no node for a pod; empty: it has one, or still searches.
// The pod stays as it is: an autoscaler adds a node for it, and the scheduler tries again when a node
// changes.
func unschedulable(pod *core1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == core1.PodScheduled && condition.Status == core1.ConditionFalse && condition.Reason == core1.PodReasonUnschedulable {
			return condition.Message
		}
	}
	return ""
}

// waitsFor returns what the start of a pod waits for.
func waitsFor(pod *core1.Pod) string {
	switch {
	case pod.Spec.NodeName == "" && pod.Status.NominatedNodeName != "":
		return "node " + pod.Status.NominatedNodeName + " ends pods of a lower priority for it"
	case pod.Spec.NodeName == "":
		return "no node was chosen yet"
	case pod.DeletionTimestamp != nil:
		return "somebody deleted its pod, and node " + pod.Spec.NodeName + " has not ended it yet"
	}
	text := "node " + pod.Spec.NodeName + " pulls the image, or prepares the volume"
	if w := containerState(pod).Waiting; w != nil && w.Message != "" {
		text += ": " + w.Message
	}
	return text
}

// startError returns why a pod cannot start; nil if it has started or may still start.
func startError(pod *core1.Pod) error {
	if text := unschedulable(pod); strings.Contains(text, "free ports") { // the scheduler has no reason for it
		return fmt.Errorf("%w: %s", runtime.ErrPortTaken, text)
	}
	// The kubelet has refused it, for example because another pod has just taken the room.
	if pod.Status.Phase == core1.PodFailed && pod.Status.Reason != "" && !ran(pod) {
		class := runtime.ErrNoRoom
		if pod.Status.Reason == "NodePorts" {
			class = runtime.ErrPortTaken
		}
		return fmt.Errorf("%w: %s", class, pod.Status.Message)
	}
	s := containerState(pod)
	if t := s.Terminated; t != nil {
		if strings.HasPrefix(t.Message, "keeper: ") || t.Reason == "StartError" || t.Reason == "ContainerCannotRun" {
			return fmt.Errorf("%w: %s", runtime.ErrBadCommand, t.Message)
		}
		return nil
	}
	if s.Waiting == nil {
		return nil
	}
	switch s.Waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff":
		return fmt.Errorf("%w: %s", pullClass(s.Waiting.Message), s.Waiting.Message)
	case "InvalidImageName", "CreateContainerConfigError", "CreateContainerError":
		return fmt.Errorf("%w: %s: %s", runtime.ErrInvalid, s.Waiting.Reason, s.Waiting.Message)
	}
	return nil
}

// pullClass classifies the kubelet's text about a pull that failed: it has no code.
func pullClass(text string) error {
	switch {
	case strings.Contains(text, "not found"):
		return runtime.ErrImageNotFound
	case strings.Contains(text, "denied") || strings.Contains(text, "nauthorized"):
		return runtime.ErrDenied
	}
	return runtime.ErrUnavailable
}

// takeBack replaces a pod that did not start by one with the gate. A pod on a node is deleted
// with a grace period, because its container may have been created meanwhile.
func (e *Engine) takeBack(ctx context.Context, pod *core1.Pod, r record) error {
	if err := e.end(ctx, pod); err != nil {
		return err
	}
	if containerState(pod).Terminated != nil { // a command that could not be run is a run
		return nil
	}
	_, err := e.replace(ctx, pod, r, time.Time{})
	return err
}

// end deletes a pod and waits until it has no process. The finalizer keeps the pod.
func (e *Engine) end(ctx context.Context, pod *core1.Pod) error {
	if ended(pod) {
		return nil
	}
	grace := int64(1)
	if pod.Spec.NodeName == "" {
		grace = 0
	}
	err := e.patch(ctx, pod, "", operation{"add", "/metadata/annotations/berth.io~1killed", "true"})
	if err == nil {
		err = e.deletePod(ctx, pod, grace)
	}
	if err != nil {
		return err
	}
	return e.await(ctx, pod, func(now *core1.Pod) (bool, error) { return now == nil || ended(now), nil })
}

// bindToNode binds a pod with ports to the node that has their addresses. A port whose address is translated on the way is
// published at every address of the node.
func (e *Engine) bindToNode(ctx context.Context, pod *core1.Pod, ports []runtime.Port) error {
	wanted, err := addressesOfPorts(ports)
	if err != nil || len(wanted) == 0 {
		return err
	}
	name, all := e.watched.withAddresses(wanted)
	if name == "" {
		nodes, _, err := e.nodes(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(nodes, func(node core1.Node) bool { return addressesOf(&node).have(wanted) })
		if at < 0 {
			return fmt.Errorf("%w: no node has %s", runtime.ErrNoAddress, strings.Join(wanted, " and "))
		}
		name, all = nodes[at].Name, addressesOf(&nodes[at])
	}
	pod.Spec.Affinity = onNode(name)
	for i, p := range ports {
		if own, has := all[p.IP]; has {
			serverOf(pod).Ports[i].HostIP = ""
			if own {
				serverOf(pod).Ports[i].HostIP = p.IP
			}
		}
	}
	return nil
}

// addressesOfPorts returns the addresses of ports that not every node has.
func addressesOfPorts(ports []runtime.Port) (list []string, err error) {
	for _, p := range ports {
		if p.Port == kubeletPort {
			return nil, fmt.Errorf("%w: port %d is the kubelet's", runtime.ErrInvalid, p.Port)
		}
		ip, err := netip.ParseAddr(p.IP)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", runtime.ErrInvalid, err)
		}
		if !ip.IsUnspecified() && !ip.IsLoopback() && !slices.Contains(list, p.IP) {
			list = append(list, p.IP)
		}
	}
	return list, nil
}

func onNode(name string) *core1.Affinity {
	term := core1.NodeSelectorTerm{MatchFields: []core1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: core1.NodeSelectorOpIn, Values: []string{name}},
	}}
	return &core1.Affinity{NodeAffinity: &core1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &core1.NodeSelector{NodeSelectorTerms: []core1.NodeSelectorTerm{term}},
	}}
}
