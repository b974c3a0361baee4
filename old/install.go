package container

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/store"
)

// installStep executes a step of an installation.
type installStep struct{ x execution }

// volumeBusyWait is the time between two checks whether the volume is free for an
// installation.
const volumeBusyWait = time.Second

func (s installStep) execute(ctx context.Context, a Action) (controller.Result, error) {
	n := installerName(s.x.c.Meta.ID)
	switch a {
	case RecordInstalling:
		return controller.RequeueNow(), s.recordInstalling()
	case PullImage:
		return s.x.pull(s.x.o.Missing)
	case CreateInstaller:
		return s.createInstaller(ctx)
	case StartInstaller:
		return s.startInstaller(ctx, n)
	case KillInstaller:
		return controller.RequeueNow(), s.x.r.Engine.Kill(ctx, n)
	case FinishInstall:
		return s.finishInstall(ctx)
	}
	return controller.RequeueNow(), s.removeInstaller(ctx, n)
}

// recordInstalling begins an installation. It does not claim the volume yet: a
// failing pull must not block the installations of other containers.
func (s installStep) recordInstalling() error {
	return s.x.record(func(st *v1.ContainerStatus, now time.Time) {
		if st.StartedInstall <= st.ObservedInstall {
			st.InstallVolume = "" // otherwise the installer before may still use it
		}
		st.Phase, st.StartedInstall, st.BootID = v1.Installing, s.x.c.Spec.InstallGeneration, s.x.r.BootID
		st.InstallFailed, st.ExitCode, st.OOMKilled, st.InstallStartedAt = false, nil, false, time.Time{}
		st.NextRetryAt, st.RestartCount, st.Crashes, st.Actor = nil, 0, 0, s.x.c.Spec.RequestedBy
		st.Conditions = keptConditions(st.Conditions)
		setCondition(st, now, v1.Installed, v1.Unknown, "Installing", "the installation is in progress")
		if s.x.o.Missing == "" {
			setImagePresent(st, now) // POST /containers waits for this condition
		}
	})
}

// claimVolume records change together with the claim of the volume, unless another
// installation uses it. Transactions of the store are serial, so only one of two
// installations gets the volume. If free is false, the step has to be retried.
func (s installStep) claimVolume(change func(*v1.ContainerStatus, time.Time)) (free bool, err error) {
	busy, changed := "", false
	err = s.x.r.Store.Update(func(tx *store.Tx) (err error) {
		now, err := store.Containers.Get(tx, s.x.c.Meta.ID)
		if changed = now.Meta.Generation != s.x.c.Meta.Generation; err != nil || changed {
			return err // the volume may be about to be removed
		}
		if busy, err = s.userOfVolume(tx); err != nil || busy != "" {
			return err
		}
		return s.x.recordIn(tx, func(st *v1.ContainerStatus, now time.Time) {
			st.InstallVolume = s.x.c.Spec.VolumeID
			setImagePresent(st, now)
			change(st, now)
		})
	})
	if err != nil || busy == "" {
		return err == nil && !changed, err
	}
	return false, s.recordBusy(busy)
}

// recordBusy records what is waited for. There is no installer now, so the volume that
// it used before a change of the spec is released.
func (s installStep) recordBusy(text string) error {
	if s.x.reported(text) {
		return nil
	}
	return s.x.record(func(st *v1.ContainerStatus, now time.Time) {
		setImagePresent(st, now)
		st.Message, st.InstallVolume = text, ""
	})
}

// busyMessage returns the message while the installation of container id uses the
// volume.
func busyMessage(id string) string {
	return fmt.Sprintf("waits for the installation of container %s, which uses the same volume", id)
}

func setImagePresent(st *v1.ContainerStatus, now time.Time) {
	setCondition(st, now, v1.ImageAvailable, v1.True, reasonPresent, "the image is on the host")
}

// userOfVolume returns the message while something else uses the volume; empty if
// nothing does.
func (s installStep) userOfVolume(tx *store.Tx) (string, error) {
	if store.Restoring(tx, s.x.c.Spec.VolumeID) != "" {
		return "waits for the restore of its volume", nil
	}
	busy, err := s.installerOfVolume(tx)
	if busy != "" {
		busy = busyMessage(busy)
	}
	return busy, err
}

// installerOfVolume returns the id of the other container whose installation uses
// the volume; empty if there is none.
func (s installStep) installerOfVolume(tx *store.Tx) (string, error) {
	// An older version of berth may have written a status that is not in the index.
	volume := s.x.c.Spec.VolumeID
	for _, id := range slices.Concat(store.VolumeHolders(tx, volume), store.Containers.IDsBy(tx, volume)) {
		if id == s.x.c.Meta.ID {
			continue
		}
		c, err := store.Containers.Get(tx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		if c.Status.InstallVolume == volume && c.Status.StartedInstall > c.Status.ObservedInstall {
			return id, nil
		}
	}
	return "", nil
}

func (s installStep) createInstaller(ctx context.Context) (controller.Result, error) {
	instance, err := s.x.r.Outage.query(ctx, s.x.r.Engine)
	if err != nil {
		return controller.Result{}, err
	}
	if st := s.x.c.Status; st.InstallVolume != s.x.c.Spec.VolumeID || st.Engine != instance || !st.InstallStartedAt.IsZero() {
		free, err := s.claimVolume(func(st *v1.ContainerStatus, _ time.Time) { st.Engine, st.InstallStartedAt = instance, time.Time{} })
		if err != nil || !free {
			return waitFor(volumeBusyWait), err
		}
	}
	_, err = createMounted(ctx, s.x, installerSpec(s.x.c, s.x.r.Volume(s.x.c.Spec.VolumeID)))
	switch {
	case errors.Is(err, runtime.ErrImageNotFound):
		return s.x.pull(installImage(s.x.c.Spec))
	case errors.Is(err, runtime.ErrInvalid), errors.Is(err, runtime.ErrBadCommand):
		return controller.RequeueNow(), s.failInstall("InvalidSpec", err.Error())
	case errors.Is(err, runtime.ErrMountRefused):
		return controller.Result{}, refuseMount(s.x, err)
	case err != nil:
		return controller.Result{}, err
	}
	return controller.RequeueNow(), nil
}

// startInstaller records when the installer is started, which clients see as its deadline,
// before it calls the engine.
func (s installStep) startInstaller(ctx context.Context, n runtime.Name) (controller.Result, error) {
	err := s.x.record(func(st *v1.ContainerStatus, now time.Time) {
		s.x.keepObserved(st)
		st.InstallStartedAt = now
	})
	if err != nil {
		return controller.Result{}, err
	}
	err = startMounted(ctx, s.x, n)
	switch {
	case errors.Is(err, runtime.ErrMountRefused):
		return controller.Result{}, refuseMount(s.x, err)
	case errors.Is(err, runtime.ErrMountMissing): // or the mounts have changed since it was created
		return controller.RequeueNow(), s.x.r.Engine.Remove(ctx, n)
	case errors.Is(err, runtime.ErrBadCommand), errors.Is(err, runtime.ErrInvalid):
		return controller.RequeueNow(), s.failInstall("CannotStart", err.Error())
	case err != nil:
		return controller.Result{}, err
	}
	return controller.RequeueNow(), nil
}

// finishInstall records the result of an installation. Without a script it is a
// success.
func (s installStep) finishInstall(ctx context.Context) (controller.Result, error) {
	in := s.x.o.Install
	if !exists(in) {
		return s.finishWithoutScript(ctx)
	}
	if in.ExitCode != 0 {
		return controller.RequeueNow(), s.recordFailure(in)
	}
	made, r, err := s.ensureServer(ctx)
	if made == nil {
		return r, err
	}
	return controller.RequeueNow(), s.x.record(made.setInstalled)
}

// finishWithoutScript finishes an installation without a script. It waits for
// other installations on the volume too: a ready container may be started.
func (s installStep) finishWithoutScript(ctx context.Context) (controller.Result, error) {
	if waiting, err := s.stillBusy(); err != nil || waiting {
		return waitFor(volumeBusyWait), err
	}
	made, r, err := s.ensureServer(ctx)
	if made == nil {
		return r, err
	}
	if free, err := s.claimVolume(made.setInstalled); err != nil || !free {
		return waitFor(volumeBusyWait), err
	}
	return controller.RequeueNow(), nil
}

// ensureServer creates the server container if it does not exist. It returns the
// step to continue with, or nil and the result if there is still no container.
func (s installStep) ensureServer(ctx context.Context) (*installStep, controller.Result, error) {
	if exists(s.x.o.Server) {
		return &s, controller.RequeueNow(), nil
	}
	id, r, err := serverStep(s).create(ctx)
	if id == "" {
		return nil, r, err
	}
	s.x.o.Server.ContainerID = id
	return &s, controller.RequeueNow(), nil
}

// stillBusy reports whether the installation or the restore that was waited for still
// uses the volume. Then no call of the engine is needed.
func (s installStep) stillBusy() (busy bool, err error) {
	if s.x.c.Status.Message == "" {
		return false, nil
	}
	err = s.x.r.Store.View(func(tx *store.Tx) error {
		text, err := s.userOfVolume(tx)
		busy = text != "" && s.x.reported(text)
		return err
	})
	return busy, err
}

// sigkillExitCode is the exit code of a container that SIGKILL ended.
const sigkillExitCode = 137

// recordFailure records why an installation failed.
func (s installStep) recordFailure(in runtime.State) error {
	switch {
	case in.ExitCode == sigkillExitCode && s.x.o.InstallFor >= s.x.c.Spec.InstallLimit(),
		in.FinishedAt.Sub(in.StartedAt) >= s.x.c.Spec.InstallLimit():
		return s.failInstall("TimedOut", fmt.Sprintf("the installation took longer than %s", s.x.c.Spec.InstallLimit()))
	case in.ExitCode == sigkillExitCode && underDiskPressure(s.x.c) && !in.OOMKilled:
		return s.failInstall(v1.DiskPressure, "the installation was stopped: what it wrote is over a limit of disk space")
	case in.OOMKilled:
		return s.failInstall(v1.ReasonOutOfMemory, "the installation ran out of memory")
	}
	return s.failInstall("ExitCode", fmt.Sprintf("the install script ended with exit code %d", in.ExitCode))
}

func (s installStep) setInstalled(st *v1.ContainerStatus, now time.Time) {
	st.Phase, st.ObservedInstall, st.InstallFailed = v1.Ready, s.x.c.Spec.InstallGeneration, false
	st.InstallID, st.ContainerID = s.x.o.Install.ContainerID, s.x.o.Server.ContainerID
	st.StartedAt, st.FinishedAt = nil, nil
	setImagePresent(st, now)
	setCondition(st, now, v1.Installed, v1.True, "Done", "the installation ended with exit code 0")
}

// failInstall records that an installation failed for good. Only a reinstall
// begins another.
func (s installStep) failInstall(reason, message string) error {
	return s.x.record(func(st *v1.ContainerStatus, now time.Time) { s.x.setFailed(st, now, reason, message) }, message)
}

// setFailed sets the status of an installation that failed for good. It keeps the
// id of an existing installer, so that it is removed.
func (s execution) setFailed(st *v1.ContainerStatus, now time.Time, reason, message string) {
	st.Phase, st.ObservedInstall, st.InstallFailed, st.Message = v1.Failed, s.c.Spec.InstallGeneration, true, message
	st.InstallID = s.o.Install.ContainerID
	if !s.o.Install.FinishedAt.IsZero() { // it may be before StartedAt, which the engine sets late on a busy host
		code := s.o.Install.ExitCode
		st.ExitCode, st.OOMKilled = &code, s.o.Install.OOMKilled
	}
	setCondition(st, now, v1.Installed, v1.False, reason, message)
}

// removeInstaller removes the installer after its output was read. An installation
// that begins anew begins in this boot of the host.
func (s installStep) removeInstaller(ctx context.Context, n runtime.Name) error {
	if exists(s.x.o.Install) {
		s.x.drain(ctx, installerTarget(s.x.c, s.x.o.Install))
	}
	if err := s.x.r.Engine.Remove(ctx, n); err != nil {
		return err
	}
	return s.x.record(func(st *v1.ContainerStatus, _ time.Time) {
		st.InstallID, st.Message = "", s.x.c.Status.Message
		if st.ObservedInstall != s.x.c.Spec.InstallGeneration {
			st.BootID = s.x.r.BootID
		}
	})
}
