package server

import (
	"context"
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
	decoder  decoder
	engine   func() EngineHealth
	sampler  Stats
	mounts   func(source string) string // see intent.Policy
	node     func() v1.Node             // nil: unknown
}

type acceptedBody struct {
	Message    string `json:"message"`
	InternalID string `json:"internal_id"`
}

// containerID returns the container id in the path of a request. An invalid id,
// and one that the caller may not access, is v1.ErrContainerNotFound.
func containerID(c *fiber.Ctx) (string, error) {
	id := edge.Param(c, "id")
	if !intent.IsContainerID(id) || !callerOf(c).CanAccess(id) {
		return "", v1.ErrContainerNotFound
	}
	return id, nil
}

// findContainer returns the container that the path of a request names.
func findContainer(c *fiber.Ctx, db *store.Store) (o v1.Container, err error) {
	id, err := containerID(c)
	if err != nil {
		return o, err
	}
	err = db.View(func(tx *store.Tx) (err error) {
		o, err = intent.FindContainer(tx, id)
		return err
	})
	return o, err
}

func (s containers) view(o v1.Container) v1.ContainerView {
	return v1.ViewOf(o, volumePath(s.settings, o.Spec.VolumeID), conditionsOf(o, s.engine))
}

// etag returns the ETag of a container: its quoted revision.
func etag(o v1.Container) string { return strconv.Quote(strconv.FormatUint(o.Meta.Revision, 10)) }

// get answers with a container, or with ?view=spec only with what a client may declare again.
func (s containers) get(c *fiber.Ctx) error {
	view := c.Query("view")
	if view != "" && view != "spec" {
		return v1.Errorf(v1.InvalidRequest, "view: must be spec")
	}
	o, err := findContainer(c, s.store)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderETag, etag(o))
	if view == "spec" {
		return edge.OK(c, v1.Declared(o))
	}
	return edge.OK(c, s.view(o))
}

type containersBody[V any] struct {
	Containers []V    `json:"containers"`
	Continue   string `json:"continue,omitempty"`
}

// list answers with the containers that match every ?label=, and with
// their resource usage if ?stats=true.
func (s containers) list(c *fiber.Ctx) error {
	want, err := labelQuery(c)
	if err != nil {
		return err
	}
	measured, err := edge.QueryBool(c, "stats")
	if err != nil {
		return err
	}
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	caller := callerOf(c)
	var body containersBody[v1.ContainerSummary]
	err = s.store.View(func(tx *store.Tx) error {
		body.Containers, body.Continue = listObjects(tx, store.Containers, page, func(o v1.Container) (v1.ContainerSummary, bool) {
			if !caller.CanAccess(o.Meta.ID) || !hasLabels(o.Spec.Labels, want) {
				return v1.ContainerSummary{}, false
			}
			return v1.SummaryOf(o), true
		})
		return nil
	})
	if err != nil {
		return err
	}
	if measured {
		return s.listMeasured(c, body)
	}
	return edge.OK(c, body)
}

// samplesTimeout bounds how long a list waits for resource usage.
const samplesTimeout = 5 * time.Second

// listMeasured answers with a list and the resource usage of each container.
func (s containers) listMeasured(c *fiber.Ctx, list containersBody[v1.ContainerSummary]) error {
	if s.sampler == nil {
		return edge.ErrUnavailable
	}
	ids := make([]string, len(list.Containers))
	for i, o := range list.Containers {
		ids[i] = o.InternalID
	}
	ctx, cancel := context.WithTimeout(context.Background(), samplesTimeout)
	defer cancel()
	samples := s.sampler.Samples(ctx, ids)
	body := containersBody[v1.MeasuredContainer]{[]v1.MeasuredContainer{}, list.Continue}
	for _, o := range list.Containers {
		view := v1.MeasuredContainer{ContainerSummary: o}
		if sample, runs := samples[o.InternalID]; runs {
			view.Stats = &sample
		}
		body.Containers = append(body.Containers, view)
	}
	return edge.OK(c, body)
}

// labelQuery returns the query parameters label, each "name=value" or "name".
func labelQuery(c *fiber.Ctx) ([]string, error) {
	want := edge.QueryValues(c, "label")
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
func (s containers) power(verb intent.Verb) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := containerID(c)
		if err != nil {
			return err
		}
		answer := acceptedBody{"Container " + string(verb) + " initiated", id}
		if err := intent.Power(promise(c, s.store, fiber.StatusOK, func(string) any { return answer }), id, verb); err != nil {
			return err
		}
		return edge.OK(c, answer)
	}
}

func (s containers) reinstall(c *fiber.Ctx) error {
	var body struct {
		Image         *string `json:"image"`
		InstallScript *string `json:"install_script"`
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	r := intent.Reinstallation{Image: body.Image, Script: body.InstallScript}
	id, err := containerID(c)
	if err != nil || f.Any() {
		intent.CheckReinstallation(&f, r)
		return refused(f, err)
	}
	answer := acceptedBody{"Container reinstallation initiated", id}
	if err := intent.ReinstallContainer(promise(c, s.store, fiber.StatusOK, func(string) any { return answer }), id, r); err != nil {
		return err
	}
	return edge.OK(c, answer)
}

func (s containers) rebindNetwork(c *fiber.Ctx) error {
	var body struct {
		Ports []v1.Port `json:"ports" api:"required"`
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	id, err := containerID(c)
	if err != nil || f.Any() {
		intent.CheckBindings(&f, body.Ports)
		return refused(f, err)
	}
	answer := acceptedBody{"Container network rebinding initiated", id}
	if err := intent.RebindNetwork(promise(c, s.store, fiber.StatusOK, func(string) any { return answer }), id, body.Ports); err != nil {
		return err
	}
	return edge.OK(c, answer)
}

// delete requests the deletion of a container, and with ?volume=true of
// its volume too.
func (s containers) delete(c *fiber.Ctx) error {
	volume, err := edge.QueryBool(c, "volume")
	if err != nil {
		return err
	}
	id, err := containerID(c)
	if err != nil {
		return err
	}
	if err := intent.DeleteContainer(requestOf(c, s.store), id, volume); err != nil {
		return err
	}
	return edge.OK(c, messageBody{"Container deletion initiated"})
}
