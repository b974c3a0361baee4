package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/store"
)

// installStep is a step of an installation.
type installStep struct{ step }

// How long an installation waits before it looks whether the volume is free.
const volumeBusyWait = time.Second

func (s installStep) take(ctx context.Context, a Action) (controller.Result, error) {
	n := installerName(s.c.Meta.ID)
	switch a {
	case RecordInstalling:
		return requeue, s.recordInstalling()
	case PullImage:
		return s.pull(s.o.Missing)
	case CreateInstaller:
		return s.createInstaller(ctx)
	case StartInstaller:
		return s.startInstaller(ctx, n)
	case KillInstaller:
		return requeue, s.Engine.Kill(ctx, n)
	case FinishInstall:
		return s.finishInstall(ctx)
	}
	return requeue, s.removeInstaller(ctx, n)
}

// recordInstalling begins an installation. It takes no volume yet: a pull that
// does not succeed must not keep others from theirs.
func (s installStep) recordInstalling() error {
	return s.record(func(st *v1.ContainerStatus, now time.Time) {
		if st.StartedInstall <= st.ObservedInstall {
			st.InstallVolume = "" // else the installer before may be at work on it
		}
		st.Phase, st.StartedInstall, st.BootID = v1.Installing, s.c.Spec.InstallGeneration, s.BootID
		st.InstallFailed, st.ExitCode, st.OOMKilled = false, nil, false
		st.NextRetryAt, st.RestartCount, st.Crashes = nil, 0, 0
		st.Conditions = forInstallation(st.Conditions)
		set(st, now, v1.Installed, v1.Unknown, "Installing", "the installation is under way")
		if s.o.Missing == "" {
			imagePresent(st, now) // who creates it waits for this word
		}
	})
}

// onVolume notes a change that needs the volume, unless another installation
// works on it: the store's one writer sees to it that only one of two gets
// through. It is false when it has to be tried again.
func (s installStep) onVolume(change func(*v1.ContainerStatus, time.Time)) (free bool, err error) {
	busy, changed := "", false
	err = s.Store.Update(func(tx *store.Tx) (err error) {
		now, err := store.Containers.Get(tx, s.c.Meta.ID)
		if changed = now.Meta.Generation != s.c.Meta.Generation; err != nil || changed {
			return err // the volume may be on its way out
		}
		if busy, err = s.installerOfVolume(tx); err != nil || busy != "" {
			return err
		}
		return s.recordIn(tx, func(st *v1.ContainerStatus, now time.Time) {
			st.InstallVolume = s.c.Spec.VolumeID
			imagePresent(st, now)
			change(st, now)
		})
	})
	if err != nil || busy == "" {
		return err == nil && !changed, err
	}
	return false, s.recordBusy(busy)
}

// recordBusy says who is waited for. There is no installer now, so the volume that
// it had before a change of the spec is free for others.
func (s installStep) recordBusy(busy string) error {
	text := waitsFor(busy)
	if s.reported(text) {
		return nil
	}
	return s.record(func(st *v1.ContainerStatus, now time.Time) {
		imagePresent(st, now)
		st.Message, st.InstallVolume = text, ""
	})
}

func waitsFor(id string) string {
	return fmt.Sprintf("waits for the installation of container %s, which uses the same volume", id)
}

func imagePresent(st *v1.ContainerStatus, now time.Time) {
	set(st, now, v1.ImageAvailable, v1.True, "Present", "the image is on the host")
}

// installerOfVolume is the container whose installation works on the same
// volume, if there is one.
func (s installStep) installerOfVolume(tx *store.Tx) (string, error) {
	all, err := store.Containers.List(tx)
	for _, c := range all {
		if c.Meta.ID != s.c.Meta.ID && c.Status.InstallVolume == s.c.Spec.VolumeID && c.Status.StartedInstall > c.Status.ObservedInstall {
			return c.Meta.ID, nil
		}
	}
	return "", err
}

func (s installStep) createInstaller(ctx context.Context) (controller.Result, error) {
	instance, err := s.Outage.ask(ctx, s.Engine)
	if err != nil {
		return settled, err
	}
	if s.c.Status.InstallVolume != s.c.Spec.VolumeID || s.c.Status.Engine != instance {
		free, err := s.onVolume(func(st *v1.ContainerStatus, _ time.Time) { st.Engine = instance })
		if err != nil || !free {
			return waitFor(volumeBusyWait), err
		}
	}
	_, err = createMounted(ctx, s.step, installerSpec(s.c, s.Volume(s.c.Spec.VolumeID)))
	switch {
	case errors.Is(err, runtime.ErrImageNotFound):
		return s.pull(installImage(s.c.Spec))
	case errors.Is(err, runtime.ErrInvalid), errors.Is(err, runtime.ErrBadCommand):
		return requeue, s.failInstall("InvalidSpec", err.Error())
	case errors.Is(err, runtime.ErrMountRefused):
		return settled, refuseMount(s.step, err)
	case err != nil:
		return settled, err
	}
	return requeue, nil
}

func (s installStep) startInstaller(ctx context.Context, n runtime.Name) (controller.Result, error) {
	err := startMounted(ctx, s.step, n)
	switch {
	case errors.Is(err, runtime.ErrMountRefused):
		return settled, refuseMount(s.step, err)
	case errors.Is(err, runtime.ErrMountMissing): // or the mounts have changed since it was created
		return requeue, s.Engine.Remove(ctx, n)
	case errors.Is(err, runtime.ErrBadCommand), errors.Is(err, runtime.ErrInvalid):
		return requeue, s.failInstall("CannotStart", err.Error())
	case err != nil:
		return settled, err
	}
	return requeue, nil
}

// finishInstall notes how an installation ended. No script at all is ready.
func (s installStep) finishInstall(ctx context.Context) (controller.Result, error) {
	in := s.o.Install
	if !exists(in) {
		return s.finishWithout(ctx)
	}
	if in.ExitCode != 0 {
		return requeue, s.recordFailure(in)
	}
	made, r, err := s.withServer(ctx)
	if made == nil {
		return r, err
	}
	return requeue, s.record(made.installed)
}

// finishWithout is for an installation without a script, which waits for those
// of others all the same: what is ready may be started.
func (s installStep) finishWithout(ctx context.Context) (controller.Result, error) {
	if waiting, err := s.waiting(); err != nil || waiting {
		return waitFor(volumeBusyWait), err
	}
	made, r, err := s.withServer(ctx)
	if made == nil {
		return r, err
	}
	if free, err := s.onVolume(made.installed); err != nil || !free {
		return waitFor(volumeBusyWait), err
	}
	return requeue, nil
}

// withServer makes the server container, if there is none. It returns the step
// as it goes on then; nil if there is still none, and what is next.
func (s installStep) withServer(ctx context.Context) (*installStep, controller.Result, error) {
	if exists(s.o.Server) {
		return &s, requeue, nil
	}
	id, r, err := serverStep(s).create(ctx)
	if id == "" {
		return nil, r, err
	}
	s.o.Server.ContainerID = id
	return &s, requeue, nil
}

// waiting says whether the one that was waited for is still at work on the
// volume: then the engine need not be asked for anything again.
func (s installStep) waiting() (busy bool, err error) {
	if s.c.Status.Message == "" {
		return false, nil
	}
	err = s.Store.View(func(tx *store.Tx) error {
		id, err := s.installerOfVolume(tx)
		busy = id != "" && s.reported(waitsFor(id))
		return err
	})
	return busy, err
}

// killedCode is the exit code of what SIGKILL ended.
const killedCode = 137

// recordFailure says why an installation did not go well.
func (s installStep) recordFailure(in runtime.State) error {
	switch {
	case in.ExitCode == killedCode && s.o.InstallFor >= installTimeout(s.c.Spec),
		in.FinishedAt.Sub(in.StartedAt) >= installTimeout(s.c.Spec):
		return s.failInstall("TimedOut", fmt.Sprintf("the installation took longer than %s", installTimeout(s.c.Spec)))
	case in.ExitCode == killedCode && underDiskPressure(s.c) && !in.OOMKilled:
		return s.failInstall(v1.DiskPressure, "the installation was stopped: what it wrote is over a limit of disk space")
	case in.OOMKilled:
		return s.failInstall("OutOfMemory", "the installation ran out of memory")
	}
	return s.failInstall("ExitCode", fmt.Sprintf("the install script ended with exit code %d", in.ExitCode))
}

func (s installStep) installed(st *v1.ContainerStatus, now time.Time) {
	st.Phase, st.ObservedInstall, st.InstallFailed = v1.Ready, s.c.Spec.InstallGeneration, false
	st.InstallID, st.ContainerID = s.o.Install.ContainerID, s.o.Server.ContainerID
	st.StartedAt, st.FinishedAt = nil, nil
	imagePresent(st, now)
	set(st, now, v1.Installed, v1.True, "Done", "the installation ended with exit code 0")
}

// failInstall ends an installation for good; reinstall is the way on.
func (s installStep) failInstall(reason, message string) error {
	return s.record(func(st *v1.ContainerStatus, now time.Time) { s.failed(st, now, reason, message) }, message)
}

// failed is the end of an installation for good. An installer that is there is
// named, so that it is removed.
func (s step) failed(st *v1.ContainerStatus, now time.Time, reason, message string) {
	st.Phase, st.ObservedInstall, st.InstallFailed, st.Message = v1.Failed, s.c.Spec.InstallGeneration, true, message
	st.InstallID = s.o.Install.ContainerID
	if s.o.Install.FinishedAt.After(s.o.Install.StartedAt) {
		code := s.o.Install.ExitCode
		st.ExitCode, st.OOMKilled = &code, s.o.Install.OOMKilled
	}
	set(st, now, v1.Installed, v1.False, reason, message)
}

// removeInstaller cleans up, once its log is kept. What comes after it, begins
// in this boot of the host.
func (s installStep) removeInstaller(ctx context.Context, n runtime.Name) error {
	if exists(s.o.Install) {
		s.drain(ctx, installerTarget(s.c, s.o.Install))
	}
	if err := s.Engine.Remove(ctx, n); err != nil {
		return err
	}
	return s.record(func(st *v1.ContainerStatus, _ time.Time) {
		st.InstallID, st.Message = "", s.c.Status.Message
		if st.ObservedInstall != s.c.Spec.InstallGeneration {
			st.BootID = s.BootID
		}
	})
}
