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

type createdBody struct {
	acceptedBody
	State v1.Phase `json:"state"`
}

func (s containers) checkCreate(c *call, r *v1.ContainerView) error {
	c.describe(func(a *v1.Audit) {
		a.Object, a.Container, a.Volume = r.InternalID, r.InternalID, fullVolume(s.store, r.VolumeID)
	})
	if c.faults.Any() { // otherwise CreateContainer checks it
		intent.CheckContainer(&c.faults, s.policy(), r.InternalID, &r.ContainerSpec)
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

func (s containers) checkApply(c *call, r *v1.ContainerView) error {
	c.describe(func(a *v1.Audit) { a.Volume = fullVolume(s.store, r.VolumeID) })
	id := c.param("id")
	if r.InternalID != "" && r.InternalID != id {
		c.faults.Add("internal_id", "must equal the id in the URL")
	}
	_, err := edge.QueryBool(c.Ctx, "dry_run")
	if err == nil && !c.faults.Any() { // ApplyContainer checks it
		return nil
	}
	intent.CheckContainer(&c.faults, s.policy(), id, &r.ContainerSpec)
	return refused(c.faults, err)
}

// refused returns the errors of a body, or err if it has none.
func refused(f v1.FieldErrors, err error) error {
	if f.Any() {
		return f
	}
	return err
}

// apply creates or updates a container as the body describes it.
func (s containers) apply(c *call, r v1.ContainerView) (any, error) {
	dryRun, _ := edge.QueryBool(c.Ctx, "dry_run") // checkApply found no error
	o := intent.ApplyOptions{IfMatch: c.Get(fiber.HeaderIfMatch), DryRun: dryRun}
	done, err := intent.ApplyContainer(c.writer(s.store), s.policy(), c.param("id"), r.ContainerSpec, o)
	switch {
	case err != nil:
		return nil, err
	case dryRun:
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
