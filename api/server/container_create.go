package server

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// purgeWait bounds how long a failed creation waits for its record to be removed.
const purgeWait = 5 * time.Second

// create stores the desired state, and waits for the result of the image
// check for at most reconcile.create_wait.
func (s containers) create(c *fiber.Ctx) error {
	var body v1.ContainerView
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	describe(c, func(a *v1.Audit) {
		a.Object, a.Container, a.Volume = body.InternalID, body.InternalID, fullVolume(s.store, body.VolumeID)
	})
	if f.Any() {
		intent.CheckContainer(&f, s.policy(), body.InternalID, &body.ContainerSpec)
		return f.Err()
	}
	answer := struct {
		acceptedBody
		State v1.Phase `json:"state"`
	}{acceptedBody{"Container creation started", body.InternalID}, v1.Installing}
	request := promise(c, s.store, fiber.StatusOK, func(string) any { return answer })
	if err := intent.CreateContainer(request, s.policy(), body.InternalID, body.ContainerSpec); err != nil {
		return err
	}
	if err := s.imageVerdict(request, body.InternalID); err != nil {
		return err
	}
	return edge.OK(c, answer)
}

// imageVerdict waits until the image of a new container was found or not, for at
// most reconcile.create_wait. If the image does not exist it removes the container
// and returns v1.ErrImageNotFound. If the result is not known in time the creation
// continues.
func (s containers) imageVerdict(w store.Writer, id string) error {
	wait := time.Duration(s.settings.Current().Reconcile.CreateWait)
	waiting, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	o, err := store.Containers.Await(waiting, s.store, id, judged)
	verdict := v1.FindCondition(o.Status.Conditions, v1.ImageAvailable)
	if err != nil || verdict.Status != v1.False || verdict.Reason != v1.ReasonImageNotFound {
		return nil
	}
	if taken, err := intent.TakeBackContainer(w, o); err != nil || !taken {
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

type actionBody struct {
	Action string `json:"action"`
	Reason string `json:"reason"`
}

// apply creates or updates a container as the body describes it.
func (s containers) apply(c *fiber.Ctx) error {
	var body v1.ContainerView
	var f v1.FieldErrors
	if err := s.decoder.decode(c, &body, &f); err != nil {
		return err
	}
	describe(c, func(a *v1.Audit) { a.Volume = fullVolume(s.store, body.VolumeID) })
	id := edge.Param(c, "id")
	if body.InternalID != "" && body.InternalID != id {
		f.Add("internal_id", "must equal the id in the URL")
	}
	dryRun, err := edge.QueryBool(c, "dry_run")
	if err != nil || f.Any() {
		intent.CheckContainer(&f, s.policy(), id, &body.ContainerSpec)
		return refused(f, err)
	}
	o := intent.ApplyOptions{IfMatch: c.Get(fiber.HeaderIfMatch), DryRun: dryRun}
	done, err := intent.ApplyContainer(requestOf(c, s.store), s.policy(), id, body.ContainerSpec, o)
	switch {
	case err != nil:
		return err
	case dryRun:
		return edge.OK(c, changes(done))
	}
	after, err := findContainer(c, s.store)
	if err != nil {
		return err
	}
	status := fiber.StatusOK
	if done.Created {
		status = fiber.StatusCreated
	}
	c.Set(fiber.HeaderETag, etag(after))
	return edge.Reply(c, status, s.view(after))
}

func changes(done intent.Applied) any {
	list := make([]actionBody, len(done.Actions))
	for i, a := range done.Actions {
		list[i] = actionBody(a)
	}
	return struct {
		Changed bool         `json:"changed"`
		Actions []actionBody `json:"actions"`
	}{done.Changed(), list}
}

// cpus returns the number of processors of the host; 0: unknown.
func (s containers) cpus() int {
	if s.node == nil {
		return 0
	}
	return s.node().CPUs
}

// policy returns the admission policy of the current configuration.
func (s containers) policy() intent.Policy {
	docker := s.settings.Current().Docker
	return intent.Policy{AllowedMounts: docker.AllowedMounts, Registries: slices.Collect(maps.Keys(docker.Registries)), ReadOnlyRoot: docker.ReadOnlyRoot,
		CheckMount: s.mounts, CPUs: s.cpus()}
}
