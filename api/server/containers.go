package server

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// containers holds the handlers for containers, except for their consoles.
type containers struct {
	store    *store.Store
	settings auth.Settings
	engine   func() EngineHealth
	sampler  Stats
	mounts   func(source string) string // see intent.Policy
	node     func() v1.Node
}

type acceptedBody struct {
	Message    string `json:"message"`
	InternalID string `json:"internal_id"`
}

// containerID returns the container id in the path of a request. An invalid id,
// and one that the caller may not access, is v1.ErrContainerNotFound.
func (c *call) containerID() (string, error) {
	id := c.Params("id")
	if !intent.IsContainerID(id) || !c.caller.CanAccess(id) {
		return "", v1.ErrContainerNotFound
	}
	return id, nil
}

// findContainer returns the container that the path of a request names.
func (c *call) findContainer(db *store.Store) (o v1.Container, err error) {
	id, err := c.containerID()
	if err != nil {
		return o, err
	}
	return intent.FindContainer(db.Read(), id)
}

func (s containers) view(o v1.Container) v1.ContainerView {
	volume, _ := store.Volumes.Get(s.store.Read(), o.Spec.VolumeID)
	return v1.ViewOf(o, volumePath(s.settings, o.Spec.VolumeID, volume.Spec.Storage), conditionsOf(o, s.engine))
}

// etag returns the ETag of a container: its quoted revision.
func etag(o v1.Container) string { return strconv.Quote(strconv.FormatUint(o.Meta.Revision, 10)) }

// get answers with a container.
func (s containers) get(c *call) (any, error) {
	o, err := c.findContainer(s.store)
	if err != nil {
		return nil, err
	}
	c.Set(fiber.HeaderETag, etag(o))
	return s.view(o), nil
}

// spec answers with the specification of a container, as apply takes it.
func (s containers) spec(c *call) (any, error) {
	o, err := c.findContainer(s.store)
	if err != nil {
		return nil, err
	}
	c.Set(fiber.HeaderETag, etag(o))
	return v1.Declared(o), nil
}

type containersBody[V any] struct {
	Containers []V    `json:"containers"`
	Continue   string `json:"continue,omitempty"`
}

// list answers with the containers that match every ?label=, and with
// their resource usage if ?stats=true.
func (s containers) list(c *call) (any, error) {
	want, err := labelQuery(c)
	if err != nil {
		return nil, err
	}
	measured, err := edge.QueryBool(c.Ctx, "stats")
	if err != nil {
		return nil, err
	}
	page, err := pageOf(c)
	if err != nil {
		return nil, err
	}
	var body containersBody[v1.ContainerSummary]
	found := store.Containers.After(s.store.Read(), page.after)
	body.Containers, body.Continue = listShown(page, found, func(o v1.Container) (v1.ContainerSummary, bool) {
		if !c.caller.CanAccess(o.Meta.ID) || !hasLabels(o.Spec.Labels, want) {
			return v1.ContainerSummary{}, false
		}
		return v1.SummaryOf(o), true
	})
	if !measured {
		return body, nil
	}
	return s.measure(c, body), nil
}

// samplesTimeout bounds how long a list waits for resource usage.
const samplesTimeout = 5 * time.Second

// measure returns a list with the resource usage of each container.
func (s containers) measure(c *call, list containersBody[v1.ContainerSummary]) (body containersBody[v1.MeasuredContainer]) {
	ids := make([]string, len(list.Containers))
	for i, o := range list.Containers {
		ids[i] = o.InternalID
	}
	ctx, end := c.bounded(samplesTimeout)
	defer end()
	samples := s.sampler.Samples(ctx, ids)
	body.Containers, body.Continue = []v1.MeasuredContainer{}, list.Continue
	for _, o := range list.Containers {
		view := v1.MeasuredContainer{ContainerSummary: o}
		if sample, runs := samples[o.InternalID]; runs {
			view.Stats = &sample
		}
		body.Containers = append(body.Containers, view)
	}
	return body
}

// labelQuery returns the query parameters label, each "name=value" or "name".
func labelQuery(c *call) ([]string, error) {
	want := edge.QueryValues(c.Ctx, "label")
	for _, text := range want {
		if name, _, _ := strings.Cut(text, "="); name == "" {
			return nil, v1.Errorf(v1.InvalidRequest, "label: must be name=value or a name")
		}
	}
	return want, nil
}

func hasLabels(labels map[string]string, want []string) bool {
	for _, text := range want {
		name, value, valued := strings.Cut(text, "=")
		if have, there := labels[name]; !there || valued && have != value {
			return false
		}
	}
	return true
}

// power returns the handler of a request of power.
func (s containers) power(verb intent.Verb) func(*call) (acceptedBody, error) {
	return func(c *call) (acceptedBody, error) {
		id, err := c.containerID()
		if err != nil {
			return acceptedBody{}, err
		}
		answer := acceptedBody{"Container " + string(verb) + " initiated", id}
		return answer, intent.Power(c.promise(s.store, func(string) any { return answer }), id, verb)
	}
}

func (s containers) checkReinstall(c *call, r *v1.ReinstallRequest) error {
	intent.CheckReinstallation(&c.fieldErrors, *r)
	return nil
}

func (s containers) reinstall(c *call, r v1.ReinstallRequest) (acceptedBody, error) {
	id, err := c.containerID()
	if err != nil {
		return acceptedBody{}, err
	}
	answer := acceptedBody{"Container reinstallation initiated", id}
	return answer, intent.ReinstallContainer(c.promise(s.store, func(string) any { return answer }), id, r)
}

type rebindRequest struct {
	Ports []v1.Port `json:"ports" api:"required"`
}

func (s containers) checkRebind(c *call, r *rebindRequest) error {
	intent.CheckBindings(&c.fieldErrors, r.Ports)
	return nil
}

func (s containers) rebindNetwork(c *call, r rebindRequest) (acceptedBody, error) {
	id, err := c.containerID()
	if err != nil {
		return acceptedBody{}, err
	}
	answer := acceptedBody{"Container network rebinding initiated", id}
	return answer, intent.RebindNetwork(c.promise(s.store, func(string) any { return answer }), id, r.Ports)
}

// delete requests the deletion of a container, and with ?volume=true of
// its volume too.
func (s containers) delete(c *call) (messageBody, error) {
	volume, err := edge.QueryBool(c.Ctx, "volume")
	if err != nil {
		return messageBody{}, err
	}
	id, err := c.containerID()
	if err != nil {
		return messageBody{}, err
	}
	remove := intent.DeleteContainer
	if volume {
		remove = intent.DeleteContainerAndVolume
	}
	return messageBody{"Container deletion initiated"}, remove(c.writer(s.store), id)
}

// purgeWait bounds how long a failed creation waits for its record to be removed.
const purgeWait = 5 * time.Second

type createdBody struct {
	acceptedBody
	State v1.Phase `json:"state"`
}

func (s containers) checkCreate(c *call, r *v1.ContainerView) error {
	c.describe(func(a *v1.Audit) {
		a.Object, a.Container, a.Volume = r.InternalID, r.InternalID, fullVolume(s.store, r.VolumeID)
	})
	if c.fieldErrors.Any() { // otherwise CreateContainer checks it
		intent.CheckContainer(&c.fieldErrors, s.policy(), r.InternalID, &r.ContainerSpec)
	}
	return nil
}

// create stores the desired state, and waits for the result of the image
// check for at most reconcile.create_wait.
func (s containers) create(c *call, r v1.ContainerView) (createdBody, error) {
	answer := createdBody{acceptedBody{"Container creation started", r.InternalID}, v1.Installing}
	request := c.promise(s.store, func(string) any { return answer })
	if err := intent.CreateContainer(request, s.policy(), r.InternalID, r.ContainerSpec); err != nil {
		return answer, err
	}
	return answer, s.imageVerdict(request, r.InternalID)
}

// imageVerdict waits until the image of a new container was found or not, for at
// most reconcile.create_wait. If the image does not exist it removes the container
// and returns v1.ErrImageNotFound. If the result is not known in time the creation
// continues.
func (s containers) imageVerdict(w *store.Request, id string) error {
	wait := time.Duration(s.settings.Current().Reconcile.CreateWait)
	waiting, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	o, err := store.Containers.Await(waiting, s.store, id, judged)
	verdict := v1.FindCondition(o.Status.Conditions, v1.ImageAvailable)
	if err != nil || verdict.Status != v1.False || verdict.Reason != v1.ReasonImageNotFound {
		return nil
	}
	success := w.Success
	w.Success = edge.Status(v1.ErrImageNotFound)
	if taken, err := intent.TakeBackContainer(w, o); err != nil || !taken {
		w.Success = success
		return err
	}
	going, cancel := context.WithTimeout(context.Background(), purgeWait)
	defer cancel()
	_, _ = store.Containers.Await(going, s.store, id, func(v1.Container) bool { return false })
	return v1.ErrImageNotFound
}

// judged reports whether the image of a container is known to be available or
// unavailable. During a pull it is not known.
func judged(o v1.Container) bool {
	status := v1.FindCondition(o.Status.Conditions, v1.ImageAvailable).Status
	return status == v1.True || status == v1.False
}

func (s containers) checkApply(c *call, r *v1.ContainerView) error {
	c.describe(func(a *v1.Audit) { a.Volume = fullVolume(s.store, r.VolumeID) })
	id := c.Params("id")
	if r.InternalID != "" && r.InternalID != id {
		c.fieldErrors.Add("internal_id", "must equal the id in the URL")
	}
	_, err := applyOptions(c)
	if err == nil && !c.fieldErrors.Any() { // ApplyContainer checks it
		return nil
	}
	intent.CheckContainer(&c.fieldErrors, s.policy(), id, &r.ContainerSpec)
	return refused(c.fieldErrors, err)
}

// refused returns the errors of a body, or err if it has none.
func refused(f v1.FieldErrors, err error) error {
	if f.Any() {
		return f
	}
	return err
}

func applyOptions(c *call) (o intent.ApplyOptions, err error) {
	o.IfMatch = c.Get(fiber.HeaderIfMatch)
	o.DryRun, err = edge.QueryBool(c.Ctx, "dry_run")
	switch c.Query("apply") {
	case "", "now":
	case "next-start":
		o.NextStart = true
	default:
		err = v1.Errorf(v1.InvalidRequest, "apply: must be now or next-start")
	}
	return o, err
}

// apply creates or updates a container as the body describes it.
func (s containers) apply(c *call, r v1.ContainerView) (any, error) {
	o, err := applyOptions(c)
	if err != nil {
		return nil, err
	}
	done, err := intent.ApplyContainer(c.writer(s.store), s.policy(), c.Params("id"), r.ContainerSpec, o)
	switch {
	case err != nil:
		return nil, err
	case o.DryRun:
		return v1.Changes{Changed: done.Changed(), Actions: append([]v1.Action{}, done.Actions...)}, nil
	}
	after, err := c.findContainer(s.store)
	if err != nil {
		return nil, err
	}
	c.created = done.Created
	c.Set(fiber.HeaderETag, etag(after))
	return s.view(after), nil
}

// policy returns the admission policy of the current configuration.
func (s containers) policy() intent.Policy {
	c, node := s.settings.Current(), s.node()
	docker, place := c.Docker, v1.PlacementPolicy{Allowed: c.Kubernetes.AllowedPlacement, Default: c.Kubernetes.DefaultPlacement}
	return intent.Policy{AllowedMounts: docker.AllowedMounts, Registries: slices.Collect(maps.Keys(docker.Registries)),
		ReadOnlyRoot: docker.ReadOnlyRoot, Placement: place,
		CheckMount: s.mounts, CPUs: node.CPUs, Engine: node.Engine.Name, Lacks: node.Engine.Lacks}
}

// conditionsOf returns the conditions of a container as clients see them: the
// stored ones, the last observed ones, and EngineReachable. While the engine does
// not answer, or the machine of the container, Started becomes Unknown. This is derived on each read, so that an
// outage writes no status, however many containers there are.
func conditionsOf(o v1.Container, engine func() EngineHealth) []v1.Condition {
	list, h := append([]v1.Condition{}, o.Status.Conditions...), engine()
	if machine := v1.FindCondition(list, v1.MachineReachable); machine.Status == v1.Unknown {
		doubtStarted(list, machine.Since, v1.ReasonMachineUnreachable, "the container ran when its machine last answered")
	}
	c := v1.Condition{Type: v1.EngineReachable, Status: v1.True, Reason: v1.ReasonAnswers, Message: "the engine answers", Since: h.Since}
	if !h.Reachable {
		c.Status, c.Reason = v1.False, v1.ReasonEngineUnreachable
		c.Message = "the engine does not answer; the container's state is the last observed one"
		doubtStarted(list, h.Since, v1.ReasonEngineUnreachable, "the container ran when the engine last answered")
	}
	return append(list, c)
}

// doubtStarted changes Started from True to Unknown: the container may have
// exited since then.
func doubtStarted(list []v1.Condition, since time.Time, reason, text string) {
	i := slices.IndexFunc(list, func(c v1.Condition) bool { return c.Type == v1.Started })
	if i >= 0 && list[i].Status == v1.True {
		list[i].Status, list[i].Reason, list[i].Message, list[i].Since = v1.Unknown, reason, text, since
	}
}
