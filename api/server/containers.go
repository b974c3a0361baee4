package server

import (
	"context"
	"encoding/json"
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
	encoded  *encodedContainers
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

func (s containers) view(o v1.Container) containerView {
	return viewOf(o, volumePath(s.settings, o.Spec.VolumeID), conditionsOf(o, s.engine))
}

func (s containers) get(c *fiber.Ctx) error {
	id, err := containerID(c)
	if err != nil {
		return err
	}
	kept, found, err := s.encoded.Get(id)
	if err != nil {
		return err
	}
	if found {
		if d := kept.detail.Load(); d != nil && d.engine == s.engineHealth() && d.volumes == s.volumes() {
			c.Set(fiber.HeaderETag, kept.etag)
			return edge.SendJSON(c, d.body)
		}
	}
	return s.getEncoding(c, kept)
}

// getEncoding answers with a container, and keeps the encoded answer if the container
// is still the kept one.
func (s containers) getEncoding(c *fiber.Ctx, kept *encodedContainer) error {
	d := detail{engine: s.engineHealth(), volumes: s.volumes()}
	o, err := findContainer(c, s.store)
	if err != nil {
		return err
	}
	if d.body, err = json.Marshal(s.view(o)); err != nil {
		return err
	}
	if kept != nil && kept.revision == o.Meta.Revision {
		kept.detail.Store(&d)
	}
	c.Set(fiber.HeaderETag, etag(o))
	return edge.SendJSON(c, d.body)
}

func (s containers) engineHealth() (h EngineHealth) {
	if s.engine != nil {
		h = s.engine()
	}
	return h
}

func (s containers) volumes() string { return s.settings.Current().Storage.VolumesPath }

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
	if page.whole() && len(want) == 0 && !measured && !caller.Restricted() {
		body, err := s.encoded.list()
		if err != nil {
			return err
		}
		return edge.SendJSON(c, body)
	}
	list, next, err := s.encoded.page(page, func(id string, o *encodedContainer) bool {
		return caller.CanAccess(id) && hasLabels(o.labels, want)
	})
	if err != nil {
		return err
	}
	if measured {
		return s.listMeasured(c, list, next)
	}
	var w listWriter
	for _, o := range list {
		w.add(o.Value.summary)
	}
	return edge.SendJSON(c, w.end(next))
}

// samplesTimeout bounds how long a list waits for resource usage.
const samplesTimeout = 5 * time.Second

// listMeasured answers with a list and the resource usage of each container; null if it
// does not run.
func (s containers) listMeasured(c *fiber.Ctx, list []store.Projected[*encodedContainer], next string) error {
	if s.sampler == nil {
		return edge.ErrUnavailable
	}
	ids := make([]string, len(list))
	for i, o := range list {
		ids[i] = o.ID
	}
	ctx, cancel := context.WithTimeout(context.Background(), samplesTimeout)
	defer cancel()
	samples := s.sampler.Samples(ctx, ids)
	var w listWriter
	for _, o := range list {
		if sample, runs := samples[o.ID]; runs {
			w.addMeasured(o.Value.summary, &sample)
		} else {
			w.addMeasured(o.Value.summary, nil)
		}
	}
	return edge.SendJSON(c, w.end(next))
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

// verb returns the handler for a request without a body.
func (s containers) verb(message string, request func(store.Writer, string) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := containerID(c)
		if err != nil {
			return err
		}
		answer := acceptedBody{message, id}
		if err := request(promise(c, s.store, fiber.StatusOK, func(string) any { return answer }), id); err != nil {
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
		Ports []bindingBody `json:"ports" wire:"required"`
	}
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	ports := bindings(body.Ports)
	id, err := containerID(c)
	if err != nil || f.Any() {
		intent.CheckBindings(&f, ports)
		return refused(f, err)
	}
	answer := acceptedBody{"Container network rebinding initiated", id}
	if err := intent.RebindNetwork(promise(c, s.store, fiber.StatusOK, func(string) any { return answer }), id, ports); err != nil {
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
