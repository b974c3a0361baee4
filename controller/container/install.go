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

// volumeBusyWait is the time between two checks whether the volume is free for an
// installation.
const volumeBusyWait = time.Second

// recordInstalling begins an installation. It does not claim the volume yet: a
// failing pull must not block the installations of other containers.
func (t *task) recordInstalling() error {
	return t.record(func(st *v1.ContainerStatus, now time.Time) {
		if st.StartedInstall <= st.ObservedInstall {
			st.InstallVolume = "" // otherwise the installer before may still use it
		}
		st.Phase, st.StartedInstall, st.BootID = v1.Installing, t.c.Spec.InstallGeneration, t.BootID
		st.InstallFailed, st.ExitCode, st.OOMKilled, st.InstallStartedAt = false, nil, false, time.Time{}
		st.NextRetryAt, st.RestartCount, st.Crashes, st.Actor = nil, 0, 0, t.c.Spec.RequestedBy
		st.Conditions = slices.DeleteFunc(slices.Clone(st.Conditions), func(c v1.Condition) bool { // of the installation before
			return c.Type != v1.DiskPressure && c.Type != v1.VolumeReady && c.Type != v1.Reconciled
		})
		setInstalling(st, now)
		if t.o.Missing == "" {
			setImagePresent(st, now) // POST /containers waits for this condition
		}
	})
}

// claimVolume records change together with the claim of the volume, unless another
// installation uses it. Transactions of the store are serial, so only one of two
// installations gets the volume. If free is false, the step has to be retried.
func (t *task) claimVolume(set change) (free bool, err error) {
	busy, changed := "", false
	err = t.Store.Update(func(tx *store.Tx) (err error) {
		now, err := store.Containers.Get(tx, t.c.Meta.ID)
		if changed = now.Meta.Generation != t.c.Meta.Generation; err != nil || changed {
			return err // the volume may be about to be removed
		}
		if busy, err = t.userOfVolume(tx); err != nil || busy != "" {
			return err
		}
		return t.recordIn(tx, func(st *v1.ContainerStatus, now time.Time) {
			st.InstallVolume = t.c.Spec.VolumeID
			setImagePresent(st, now)
			set(st, now)
		})
	})
	if err != nil || busy == "" {
		return err == nil && !changed, err
	}
	return false, t.recordBusy(busy)
}

// recordBusy records what is waited for. There is no installer now, so the volume that
// it used before a change of the spec is released.
func (t *task) recordBusy(text string) error {
	if t.reported(text) {
		return nil
	}
	return t.record(func(st *v1.ContainerStatus, now time.Time) {
		setImagePresent(st, now)
		st.Message, st.InstallVolume = text, ""
	})
}

// userOfVolume returns the message while something else uses the volume; empty if
// nothing does.
func (t *task) userOfVolume(tx *store.Tx) (string, error) {
	if store.Restoring(tx, t.c.Spec.VolumeID) != "" {
		return "waits for the restore of its volume", nil
	}
	id, err := t.installerOfVolume(tx)
	if id == "" {
		return "", err
	}
	return fmt.Sprintf("waits for the installation of container %s, which uses the same volume", id), err
}

// installerOfVolume returns the id of the other container whose installation uses
// the volume; empty if there is none.
func (t *task) installerOfVolume(tx *store.Tx) (string, error) {
	volume := t.c.Spec.VolumeID
	for _, id := range slices.Concat(store.VolumeHolders(tx, volume), store.Containers.IDsBy(tx, volume)) {
		if id == t.c.Meta.ID {
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

func (t *task) installerName() runtime.Name { return installerName(t.c.Meta.ID) }

// pullMissing pulls an image that the installation needs.
func (t *task) pullMissing(context.Context) (controller.Result, error) { return t.pull(t.o.Missing) }

// createInstaller creates the installer, once its volume is claimed and the engine's instance
// recorded.
func (t *task) createInstaller(ctx context.Context) (controller.Result, error) {
	instance, err := t.instances.query(ctx, t.Engine)
	if err != nil {
		return controller.Result{}, err
	}
	if st := t.c.Status; st.InstallVolume != t.c.Spec.VolumeID || st.Engine != instance || !st.InstallStartedAt.IsZero() {
		free, err := t.claimVolume(func(st *v1.ContainerStatus, _ time.Time) { st.Engine, st.InstallStartedAt = instance, time.Time{} })
		if err != nil || !free {
			return waitFor(volumeBusyWait), err
		}
	}
	if _, err = t.createMounted(ctx, installerSpec(t.c, t.Volumes.Mount(t.c.Spec.VolumeID))); err != nil {
		return t.refused(ctx, err, installImage(t.c.Spec))
	}
	return controller.Result{}, nil
}

// startInstaller records when the installer is started, which clients see as its deadline,
// before it calls the engine.
func (t *task) startInstaller(ctx context.Context) (controller.Result, error) {
	err := t.Store.MustUpdate(func(tx *store.Tx) error { // an earlier failure stays until the step succeeds
		return t.write(tx, func(st *v1.ContainerStatus, now time.Time) { st.InstallStartedAt = now })
	})
	if err != nil {
		return controller.Result{}, err
	}
	if err = t.recordPrepared(); err != nil {
		return controller.Result{}, err
	}
	err = t.startMounted(ctx, t.installerName())
	switch {
	case err == nil:
		t.Preparations.Forget(t.c.Meta.ID)
	case errors.Is(err, runtime.ErrStarting):
		return waitFor(startPoll), t.recordWait(v1.Installed, err)
	case errors.Is(err, runtime.ErrMountRefused):
		err = t.refuseMount(err)
	case errors.Is(err, runtime.ErrMountMissing): // or the mounts have changed since it was created
		err = errors.Join(err, t.Engine.Remove(ctx, t.installerName()))
	case errors.Is(err, runtime.ErrBadCommand), errors.Is(err, runtime.ErrInvalid):
		err = t.failInstall("CannotStart", err.Error())
	}
	return controller.Result{}, err
}

func (t *task) killInstaller(ctx context.Context) error { return t.Engine.Kill(ctx, t.installerName()) }

// finishInstall creates the server container if it does not exist, and records the result of
// an installation. Without a script it is a success, which waits for other installations on
// the volume too: a ready container may be started.
func (t *task) finishInstall(ctx context.Context) (controller.Result, error) {
	script := exists(t.o.Install)
	if script && t.o.Install.ExitCode != 0 {
		return controller.Result{}, t.recordInstallFailure()
	}
	if !exists(t.o.Server) {
		id, res, err := t.create(ctx)
		if id == "" {
			return res, err
		}
		t.o.Server.ContainerID = id
	}
	if script {
		return controller.Result{}, t.record(t.setInstalled)
	}
	if free, err := t.claimVolume(t.setInstalled); err != nil || !free {
		return waitFor(volumeBusyWait), err
	}
	return controller.Result{}, nil
}

// sigkillExitCode is the exit code of a container that SIGKILL ended.
const sigkillExitCode = 137

// recordInstallFailure records why an installation failed.
func (t *task) recordInstallFailure() error {
	in := t.o.Install
	switch {
	case in.ExitCode == sigkillExitCode && t.o.InstallFor >= t.c.Spec.InstallLimit(),
		in.FinishedAt.Sub(in.StartedAt) >= t.c.Spec.InstallLimit():
		return t.failInstall("TimedOut", fmt.Sprintf("the installation took longer than %s", t.c.Spec.InstallLimit()))
	case in.ExitCode == sigkillExitCode && underDiskPressure(t.c) && !in.OOMKilled:
		return t.failInstall(v1.DiskPressure, "the installation was stopped: what it wrote is over a limit of disk space")
	case in.OOMKilled:
		return t.failInstall(v1.ReasonOutOfMemory, "the installation ran out of memory")
	}
	return t.failInstall("ExitCode", t.o.otherMachine(fmt.Sprintf("the install script ended with exit code %d", in.ExitCode)))
}

func (t *task) setInstalled(st *v1.ContainerStatus, now time.Time) {
	st.Phase, st.ObservedInstall, st.InstallFailed = v1.Ready, t.c.Spec.InstallGeneration, false
	st.InstallID, st.ContainerID = t.o.Install.ContainerID, t.o.Server.ContainerID
	st.StartedAt, st.FinishedAt = nil, nil
	setImagePresent(st, now)
	setCondition(st, now, condition(v1.Installed, v1.True, "Done", "the installation ended with exit code 0"))
}

// failInstall records that an installation failed for good. Only a reinstall
// begins another.
func (t *task) failInstall(reason, text string) error {
	return t.report("", text, func(st *v1.ContainerStatus, now time.Time) { t.setFailed(st, now, reason, text) })
}

// setFailed sets the status of an installation that failed for good. It keeps the
// id of an existing installer, so that it is removed.
func (t *task) setFailed(st *v1.ContainerStatus, now time.Time, reason, text string) {
	st.Phase, st.ObservedInstall, st.InstallFailed, st.Message = v1.Failed, t.c.Spec.InstallGeneration, true, text
	st.InstallID = t.o.Install.ContainerID
	if !t.o.Install.FinishedAt.IsZero() { // it may be before StartedAt, which the engine sets late on a busy host
		code := t.o.Install.ExitCode
		st.ExitCode, st.OOMKilled = &code, t.o.Install.OOMKilled
	}
	setCondition(st, now, condition(v1.Installed, v1.False, reason, text))
}

// recordInstallSlow records that an installer has run for long.
func (t *task) recordInstallSlow() error {
	text := fmt.Sprintf("the install script has run since %s and is killed after %s, counted from its start, or from the last start of "+
		"berth if that is later",
		clock(t.o.Install.StartedAt), t.c.Spec.InstallLimit())
	return t.report(v1.ReasonInstallSlow, text, func(st *v1.ContainerStatus, now time.Time) {
		setCondition(st, now, condition(v1.Installed, v1.Unknown, v1.ReasonInstallSlow, text))
	})
}

// removeInstaller removes the installer after its output was read. An installation
// that begins anew begins in this boot of the host.
func (t *task) removeInstaller(ctx context.Context) error {
	if exists(t.o.Install) {
		t.drain(ctx, t.installerTarget())
	}
	if err := t.Engine.Remove(ctx, t.installerName()); err != nil {
		return err
	}
	return t.record(func(st *v1.ContainerStatus, _ time.Time) {
		st.InstallID, st.Message = "", t.c.Status.Message
		if st.ObservedInstall != t.c.Spec.InstallGeneration {
			st.BootID = t.BootID
		}
	})
}
