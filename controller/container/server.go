package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/store"
)

// drainTimeout limits how long the rest of a container's output is read before the
// container is removed: a worker is held for one short call.
const drainTimeout = time.Second

func (t *task) serverName() runtime.Name { return serverName(t.c.Meta.ID) }

// createServer creates the server container.
func (t *task) createServer(ctx context.Context) (controller.Result, error) {
	_, res, err := t.create(ctx)
	return res, err
}

// create creates the server container. If id is empty there is none, and res is the
// result of the step.
func (t *task) create(ctx context.Context) (id string, res controller.Result, err error) {
	if recorded, err := t.recordServerVolume(); err != nil || !recorded {
		return "", controller.Result{}, err
	}
	id, err = t.createMounted(ctx, serverSpec(t.c, t.Volumes.Mount(t.c.Spec.VolumeID)))
	switch {
	case err == nil:
		if t.removedOutside() {
			t.Metrics.Repaired.WithLabelValues("removed").Inc()
		}
		return id, controller.Result{}, nil
	case t.installs() && errors.Is(err, runtime.ErrRunning): // from outside: no run of ours
		return "", controller.Result{}, t.killServer(ctx)
	}
	res, err = t.refused(ctx, err, t.c.Spec.Image)
	return "", res, err
}

// installs reports whether an installation is requested that has not ended.
func (t *task) installs() bool { return t.c.Status.ObservedInstall != t.c.Spec.InstallGeneration }

// refused does what follows after the engine has refused to create a container of an image.
func (t *task) refused(ctx context.Context, err error, image string) (controller.Result, error) {
	if errors.Is(err, runtime.ErrImageNotFound) {
		return t.pull(image)
	}
	if imageErr := t.recordArrived(ctx, image); imageErr != nil {
		return controller.Result{}, errors.Join(err, imageErr)
	}
	invalid := errors.Is(err, runtime.ErrInvalid) || errors.Is(err, runtime.ErrBadCommand)
	switch {
	case invalid && t.installs():
		err = t.failInstall("InvalidSpec", err.Error())
	case errors.Is(err, runtime.ErrMountRefused):
		err = t.refuseMount(err)
	case invalid:
		err = controller.Terminal(err)
	}
	return controller.Result{}, err
}

// recordArrived records that an image which was being pulled is on the host, although no container
// could be created from it.
func (t *task) recordArrived(ctx context.Context, image string) error {
	if v1.FindCondition(t.c.Status.Conditions, v1.ImageAvailable).Status != v1.Unknown {
		return nil
	}
	if id, err := t.Engine.ImageID(ctx, image); err != nil || id == "" {
		return nil // the error that the caller has counts
	}
	t.Pulls.Forget(t.c.Meta.ID)
	return t.Store.MustUpdate(func(tx *store.Tx) error { return t.write(tx, setImagePresent) })
}

// recordServerVolume records which volume the server container mounts, before the
// container is created: the volume must not be removed until the engine reports that
// the container is gone. It returns false if the spec has changed since it was
// loaded: its volume may be about to be removed.
func (t *task) recordServerVolume() (recorded bool, err error) {
	expansion := t.c.Spec.Expansion(t.o.Gateway)
	if t.c.Status.ServerVolume == t.c.Spec.VolumeID && t.c.Status.ServerExpansion == expansion {
		return true, nil
	}
	return t.recordUnchanged(nil, func(tx *store.Tx) error {
		return t.amendIn(tx, func(st *v1.ContainerStatus, _ time.Time) {
			st.ServerVolume, st.ServerExpansion = t.c.Spec.VolumeID, expansion
		})
	})
}

// createMounted creates a container with its volume and the mounts of its spec.
// The sources are checked now: they may have changed since the client's request.
func (t *task) createMounted(ctx context.Context, spec runtime.Spec) (id string, err error) {
	if err := t.requireClaim(); err != nil {
		return "", err
	}
	pinned, release, err := t.Mounts.Pin(ctx, spec.Name, mounts(t.c.Spec))
	if err != nil {
		return "", err
	}
	defer release()
	spec.Mounts, spec.Env = append(spec.Mounts, pinned...), environment(t.c.Spec, t.o.Gateway)
	spec.Incarnation = t.Store.Incarnations.Incarnation() // the revision is counted within it
	id, err = t.Engine.Create(ctx, spec)
	if err != nil {
		t.recordHost(err)
	}
	return id, err
}

// startMounted starts a container. An engine resolves the sources of mounts at
// each start, so they are checked and pinned at each start too.
func (t *task) startMounted(ctx context.Context, n runtime.Name) error {
	_, release, err := t.Mounts.Pin(ctx, n, mounts(t.c.Spec))
	if err != nil {
		return err
	}
	defer release()
	err = t.Engine.Start(ctx, n)
	t.recordHost(err)
	return err
}

// recordHost records whether the host can start containers, as a condition of the node, after a
// start or a creation that failed.
func (t *task) recordHost(err error) {
	c := v1.Condition{Type: v1.ContainersStart, Status: v1.True, Reason: v1.ReasonStarted, Message: "containers start again"}
	switch {
	case errors.Is(err, runtime.ErrHost):
		c.Status, c.Reason = v1.False, v1.ReasonHostFault
		c.Message = "no container starts: " + v1.ClippedText(causeOf(err), maxCause) + "; see berth doctor"
	case err != nil:
		return
	}
	if t.hostStarts.Load() == c.Status {
		return
	}
	err = t.Store.MustUpdate(func(tx *store.Tx) error { return store.SetNodeCondition(tx, c) })
	if err != nil {
		t.Log.Warn("a condition of the node could not be stored", "condition", c.Type, "err", err)
		return
	}
	t.hostStarts.Store(c.Status)
}

// refuseMount records a refused mount as a condition and an event, once, and
// returns the error for the retry.
func (t *task) refuseMount(err error) error {
	text := err.Error()
	if t.reported(text) {
		return err
	}
	return errors.Join(err, t.report("", text, func(st *v1.ContainerStatus, now time.Time) {
		setCondition(st, now, condition(v1.Started, v1.False, reasonMountRefused, text))
	}))
}

// removedOutside reports whether the container of the requested run was removed
// from outside.
func (t *task) removedOutside() bool {
	st := t.c.Status
	return st.ContainerID != "" && st.ContainerID != st.RemovedID && t.c.Spec.Power == v1.PowerOn && st.ObservedRun == t.c.Spec.RunGeneration
}

func (t *task) recordCreated() error {
	return t.record(func(st *v1.ContainerStatus, _ time.Time) { st.ContainerID = t.o.Server.ContainerID })
}

// removeServer removes the server container, and records that it was not removed
// from outside.
func (t *task) removeServer(ctx context.Context) (controller.Result, error) {
	if !t.c.Meta.Deleted && !t.installs() && t.o.Server.SpecHash != t.c.Spec.SpecHash() {
		if accepted, res, err := t.probe(ctx); !accepted {
			return res, err
		}
	}
	t.drain(ctx, t.serverTarget())
	if err := t.Engine.Remove(ctx, t.serverName()); err != nil || t.c.Meta.Deleted {
		return controller.Result{}, err
	}
	return controller.Result{}, t.amend(func(st *v1.ContainerStatus, _ time.Time) {
		st.RemovedID, st.ServerVolume = t.o.Server.ContainerID, ""
		if underDiskPressure(t.c) { // otherwise the container counts as removed from outside and runs again at once
			st.ContainerID = ""
		}
	})
}

// probe reports whether the engine accepts the spec: a container is not removed for a spec
// from which no other can be created.
func (t *task) probe(ctx context.Context) (accepted bool, res controller.Result, err error) {
	spec := serverSpec(t.c, t.Volumes.Mount(t.c.Spec.VolumeID))
	pinned, release, err := t.Mounts.Pin(ctx, spec.Name, mounts(t.c.Spec))
	if err == nil {
		defer release()
		spec.Mounts = append(spec.Mounts, pinned...)
		err = t.Engine.Probe(ctx, spec)
	}
	if err == nil {
		return true, res, nil
	}
	t.recordHost(err)
	res, err = t.refused(ctx, err, t.c.Spec.Image)
	return false, res, err
}

// connectServer connects a container that was disconnected from outside.
func (t *task) connectServer(ctx context.Context) error {
	err := t.Engine.Connect(ctx, t.serverName())
	if err == nil {
		t.Metrics.Repaired.WithLabelValues("network").Inc()
	}
	return err
}

// drain saves the rest of a container's output before the container is removed.
// Output that cannot be read in time is lost, and does not delay the removal.
func (t *task) drain(ctx context.Context, target runtime.Target) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	if err := t.Console.Drain(ctx, target); err != nil {
		t.Log.Warn("the last output of a container was not read", "container", target.ID, "role", target.Role, "err", err)
	}
}

// updateLimits changes the limits of an existing container. Limits that the engine
// does not apply are recorded as refused, and not retried.
func (t *task) updateLimits(ctx context.Context) error {
	err := t.Engine.Update(ctx, t.serverName(), limitsOf(t.c, t.o.Server))
	if errors.Is(err, runtime.ErrUnavailable) {
		return err
	}
	now, inspectErr := t.inspect(ctx, t.serverName())
	if inspectErr != nil || !exists(now) {
		return inspectErr
	}
	t.o.Server = now
	if !limitsDiffer(t.c, now) {
		if t.c.Status.ObservedGeneration == t.c.Meta.Generation && !failing(t.c) { // nobody has changed the spec
			t.Metrics.Repaired.WithLabelValues("limits").Inc()
		}
		return t.record(func(*v1.ContainerStatus, time.Time) {}) // clears the message of an earlier attempt
	}
	text := "the engine did not apply the limits"
	switch {
	case err != nil:
		text += ": " + err.Error()
	case limits(t.c.Spec).NoOOMKill && !now.Live.NoOOMKill:
		text = "the engine did not apply limits.oom_kill: its host kills processes that use up the memory, as every host with cgroup v2 does"
	}
	return t.report("", text, func(st *v1.ContainerStatus, at time.Time) {
		st.LimitsRefused = limitsAttempt(t.c, now)
		if now.Running && errors.Is(err, runtime.ErrNoRoom) {
			st.LimitsRefused += thisRun
		}
		setCondition(st, at, condition(v1.LimitsApplied, v1.False, "Refused", text))
	})
}

// thisRun ends the record of an attempt that holds for a run: its machine has no room, and that of the next
// one may have.
const thisRun = "/run"

// limitsAttempt identifies one attempt to change the limits of one container.
func limitsAttempt(c v1.Container, server runtime.State) string {
	return fmt.Sprintf("%d/%s", c.Meta.Generation, server.ContainerID)
}

// startServer starts the server container. The start is recorded already, so that a crash between
// the two neither loses nor repeats it.
func (t *task) startServer(ctx context.Context) (controller.Result, error) {
	if err := t.recordPrepared(); err != nil {
		return controller.Result{}, err
	}
	err := t.startMounted(ctx, t.serverName())
	switch {
	case errors.Is(err, runtime.ErrStarting):
		return waitFor(startPoll), t.recordWait(v1.Started, err)
	case errors.Is(err, runtime.ErrImageNotFound):
		return t.resolveAgain(ctx, err)
	}
	if err == nil {
		t.Preparations.Forget(t.c.Meta.ID)
	}
	if reason, known := startFailure(err); known {
		err = t.recordStartFailure(reason, err)
	}
	return controller.Result{}, err
}

// startPoll is the time between two calls of an engine that needs longer for a start. Its
// events come sooner.
const startPoll = 2 * time.Second

// recordWait records what a start in the engine waits for, in the condition of its role.
func (t *task) recordWait(kind string, err error) error {
	text := causeOf(err)
	if t.reported(text) {
		return nil
	}
	reason := v1.ReasonStartWaits
	if errors.Is(err, runtime.ErrNoRoom) {
		reason = reasonNoRoom
	}
	return t.record(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		setCondition(st, now, condition(kind, v1.Unknown, reason, text))
	})
}

// recordBegun records that a start which took long has begun a run. Its time limit begins, too.
func (t *task) recordBegun() error {
	return t.record(func(st *v1.ContainerStatus, now time.Time) {
		if t.o.Install.Running {
			setInstalling(st, now)
			return
		}
		removeCondition(st, v1.Started) // the next one is since now
		setStarted(t.c, t.o, st, now)
	})
}

// recordStart records a start, whose volume is prepared next. It records nothing if the spec has changed
// since it was loaded, or the volume is being restored.
func (t *task) recordStart(ctx context.Context) (err error) {
	if t.o.Engine, err = t.instances.query(ctx, t.Engine); err != nil {
		return err
	}
	// A restore of the volume waits only for the starts that are recorded.
	free := func(tx *store.Tx) bool { return store.Restoring(tx, t.c.Spec.VolumeID) == "" }
	_, err = t.recordUnchanged(free, func(tx *store.Tx) error { return t.recordIn(tx, t.setStarting) })
	return err
}

func startRecorded(c v1.Container, o Observed) bool {
	st := c.Status
	return st.Phase == v1.Starting && st.ObservedRun == c.Spec.RunGeneration &&
		st.ContainerID == o.Server.ContainerID && st.StartedBefore.Equal(o.Server.StartedAt)
}

func (t *task) setStarting(st *v1.ContainerStatus, now time.Time) {
	switch {
	case st.ObservedRun != t.c.Spec.RunGeneration: // requested by a client
		st.RestartCount, st.Crashes = 0, 0
	case st.Phase != v1.Starting: // without a request: by the restart policy, after a restore, ...
		st.RestartCount++
		st.Totals.Restarts++
	}
	st.Phase, st.ObservedRun, st.StartRecordedAt = v1.Starting, t.c.Spec.RunGeneration, now
	st.BootID, st.Engine = t.BootID, t.o.Engine
	st.ContainerID, st.StartedBefore = t.o.Server.ContainerID, t.o.Server.StartedAt
	st.StartedAt, st.FinishedAt, st.ExitCode, st.OOMKilled, st.NextRetryAt = nil, nil, nil, false, nil
	st.ImagePulled, st.OutdatedID = "", ""
}

// startFailure returns the reason of an error with which an engine refuses to
// start a container. Any other error is unknown, and the step is retried.
func startFailure(err error) (reason string, known bool) {
	switch {
	case errors.Is(err, runtime.ErrPortTaken):
		return "PortTaken", true
	case errors.Is(err, runtime.ErrNoRoom):
		return reasonNoRoom, true
	case errors.Is(err, runtime.ErrNoAddress):
		return "AddressMissing", true
	case errors.Is(err, runtime.ErrHost):
		return v1.ReasonHostFault, true
	case errors.Is(err, runtime.ErrBadCommand):
		return "BadCommand", true
	case errors.Is(err, runtime.ErrMountRefused):
		return reasonMountRefused, true
	case errors.Is(err, runtime.ErrMountMissing):
		return reasonVolumeMissing, true
	case errors.Is(err, runtime.ErrInvalid):
		return "InvalidSpec", true
	}
	return "", false
}

// recordStartFailure records why a start failed. It is retried with the backoff of
// a crash, also with the restart policy never: there was no run.
func (t *task) recordStartFailure(reason string, err error) error {
	text := "cannot start: " + v1.ClippedText(causeOf(err), maxCause)
	if holders := t.overlapping(); reason == "PortTaken" && len(holders) > 0 {
		text += "; the same port is bound as " + strings.Join(holders, ", ")
	}
	return t.report("", text, func(st *v1.ContainerStatus, now time.Time) {
		st.Phase = v1.Exit
		if reason == "BadCommand" {
			code := 127 // the shell's exit code of a command that it cannot run
			st.ExitCode = &code
		}
		setCondition(st, now, condition(v1.Started, v1.False, reason, text))
		t.nextCrash(st, now)
		if limit := now.Add(roomWait); reason == reasonNoRoom && st.NextRetryAt.After(limit) {
			st.NextRetryAt = &limit
		}
	})
}

// maxCause bounds the text of an engine or a registry in a message that says more.
const maxCause = 350

// causeOf returns the text of an error of the engine. The container's message names neither
// the call nor the container.
func causeOf(err error) string {
	if call := new(runtime.CallError); errors.As(err, &call) {
		err = call.Err
	}
	return err.Error()
}

// recordReach records that the machine of a container does not answer, or answers again.
func (t *task) recordReach() error {
	status, reason, text := v1.Unknown, v1.ReasonMachineUnreachable, t.o.Unreachable
	if text == "" {
		status, reason, text = v1.True, v1.ReasonAnswers, "the machine of the container answers, or was declared to be off"
	}
	return t.amend(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = t.o.Unreachable
		setCondition(st, now, condition(v1.MachineReachable, status, reason, text))
	}, message{reason, text})
}

// overlapping returns the claims of ports that a host cannot bind beside those of the
// container: one of the two addresses is the unspecified one, which means every address.
func (t *task) overlapping() (list []string) {
	tx := t.Store.Read()
	pools := store.Pools.List(tx)
	for _, p := range t.c.Spec.Ports {
		for _, pool := range pools {
			if pool.Spec.Protocol != p.Protocol || !overlap(pool.Spec.IP, p.IP) {
				continue
			}
			if held, err := store.GetClaim(tx, pool.Meta.ID, p.Port); err == nil && held.Container != "" { // an error hides a name only
				list = append(list, fmt.Sprintf("%s by container %s", net.JoinHostPort(pool.Spec.IP, strconv.Itoa(p.Port)), held.Container))
			}
		}
	}
	return list
}

// overlap reports whether one of two addresses of a family includes the other.
func overlap(one, other string) bool {
	a, errA := netip.ParseAddr(one)
	b, errB := netip.ParseAddr(other)
	return errA == nil && errB == nil && a != b && a.Is4() == b.Is4() && (a.IsUnspecified() || b.IsUnspecified())
}

// recordEngine records the instance of the engine under which a run continues.
func (t *task) recordEngine() error {
	return t.amend(func(st *v1.ContainerStatus, _ time.Time) { st.Engine = t.o.Engine })
}

// recordStarting records a requested run that was started from outside.
func (t *task) recordStarting() error {
	_, err := t.recordUnchanged(nil, func(tx *store.Tx) error {
		return t.recordIn(tx, func(st *v1.ContainerStatus, _ time.Time) {
			t.adopt(st)
			st.Phase, st.StartRecordedAt = v1.Starting, t.o.Server.StartedAt.Add(-time.Second)
		})
	})
	return err
}

func (t *task) recordRunning() error {
	return t.record(func(st *v1.ContainerStatus, _ time.Time) {
		t.adopt(st)
		st.Phase, st.NextRetryAt = v1.Running, nil
		st.Totals.Runs++
	})
}

// adopt copies the observed run into the status.
func (t *task) adopt(st *v1.ContainerStatus) {
	began := t.o.Server.StartedAt
	st.ContainerID, st.StartedAt, st.BootID, st.Engine = t.o.Server.ContainerID, &began, t.BootID, t.o.Engine
	st.FinishedAt, st.ExitCode, st.OOMKilled = nil, nil, false
}

// recordStartSlow records that the start pattern has not matched for long.
func (t *task) recordStartSlow() error {
	text := fmt.Sprintf("no line of the console has matched start_pattern %s since %s", quoted(t.c.Spec.StartPattern),
		clock(t.o.Server.StartedAt))
	if limit := t.c.Spec.StartTimeout; limit > 0 {
		text += fmt.Sprintf("; the run is stopped after %s", time.Duration(limit))
	}
	return t.report(v1.StartPatternNotMatched, text, func(st *v1.ContainerStatus, now time.Time) {
		setCondition(st, now, condition(v1.StartPatternNotMatched, v1.True, v1.StartPatternNotMatched, text))
	})
}

// recordStartTimeout records that the run is stopped because its start took too long. Its
// exit counts as a crash, so what follows is the same if berth is killed here.
func (t *task) recordStartTimeout() error {
	text := fmt.Sprintf("did not become running within %s", time.Duration(t.c.Spec.StartTimeout))
	if t.c.Spec.StartPattern != "" {
		text += ": no line matched start_pattern " + quoted(t.c.Spec.StartPattern)
	}
	return t.report(v1.ReasonStartTimedOut, text, func(st *v1.ContainerStatus, now time.Time) {
		st.Phase, st.StopRecordedAt, st.StopSent, st.Unrequested = v1.Stopping, now, false, false
		setCondition(st, now, condition(v1.Started, v1.Unknown, v1.ReasonStartTimedOut, text))
	})
}

// clock returns a time of the day for a message. A message stays as it is while time
// passes, so it has no durations.
func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly) + " UTC" }

// maxQuoted bounds a quoted text, in bytes.
const maxQuoted = 200

// quoted returns a text in quotes, cut after maxQuoted bytes.
func quoted(text string) string {
	end := ""
	if len(text) > maxQuoted {
		text, end = strings.ToValidUTF8(text[:maxQuoted], ""), "…"
	}
	if strconv.CanBackquote(text) {
		return "`" + text + end + "`"
	}
	return strconv.Quote(text + end)
}

func (t *task) unpause(ctx context.Context) error {
	n := t.serverName()
	if t.o.Install.Paused {
		n = installerName(t.c.Meta.ID)
	}
	err := t.Engine.Unpause(ctx, n)
	if err == nil {
		t.Metrics.Repaired.WithLabelValues("paused").Inc()
	}
	return err
}

func (t *task) recordDeleting() error {
	return t.record(func(st *v1.ContainerStatus, _ time.Time) { st.Phase = v1.Deleting })
}

// forget purges a container that has nothing left on the host. The console is
// forgotten before and after the purge, so that listeners who subscribed in between
// learn that it is gone too.
func (t *task) forget(ctx context.Context) error {
	for _, n := range []runtime.Name{t.serverName(), installerName(t.c.Meta.ID)} {
		if err := t.Engine.Remove(ctx, n); err != nil { // an engine may have more than the container, which somebody has removed
			return err
		}
	}
	t.Pulls.Forget(t.c.Meta.ID)
	t.Preparations.Cancel(t.c.Meta.ID)
	t.Preparations.Forget(t.c.Meta.ID)
	if err := t.forgetConsole(ctx); err != nil {
		return err
	}
	if err := t.Store.Update(func(tx *store.Tx) error { return store.Containers.Purge(tx, t.c.Meta.ID) }); err != nil {
		return err
	}
	t.timers.forget(t.c.Meta.ID)
	if t.madeAgain() { // its sockets listen already; those of the former container end because its UID is gone
		return nil
	}
	return t.forgetConsole(ctx)
}

// madeAgain reports whether there is a container with the id of one that was purged.
func (t *task) madeAgain() bool {
	_, err := store.Containers.Get(t.Store.Read(), t.c.Meta.ID)
	return err == nil
}

func (t *task) forgetConsole(ctx context.Context) error {
	if err := t.Console.Forget(ctx, t.c.Meta.ID); err != nil {
		return fmt.Errorf("container %s: %w", t.c.Meta.ID, err)
	}
	return nil
}
