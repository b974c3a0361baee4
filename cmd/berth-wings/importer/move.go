package importer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"berth/api/client"
	"berth/api/egg"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/config"
)

// Import moves a server of a plan to berth, and starts it if it ran. It continues where an earlier call has ended.
func (i *Importer) Import(ctx context.Context, s Server) error {
	v, err := i.reserve(ctx, s)
	if err != nil {
		return err
	}
	i.o.Step("stop")
	if err := i.engine.stop(ctx, s.object, i.o.Stop); err != nil {
		return fmt.Errorf("stop the container of wings: %w", err)
	}
	i.o.Step("remove the container")
	if err := i.engine.remove(ctx, s.UUID); err != nil {
		return err
	}
	i.o.Step("rename")
	if err := move(i.folder(s.UUID), v.Path); err != nil {
		return err
	}
	power := v1.PowerOff
	if v.Labels[Label] == ran && !s.object.Suspended {
		power = v1.PowerOn
	}
	i.o.Step("create the container")
	if err := i.o.Node.Adopt(ctx, s.object, power); err != nil {
		return fmt.Errorf("berth: %w", err)
	}
	var failed error
	if power == v1.PowerOn {
		failed = i.awaitStart(ctx, s.UUID)
	}
	i.o.Step("forget")
	_, err = i.o.Berth.Volumes().Change(ctx, v.VolumeID, v1.VolumeChange{Labels: &map[string]string{egg.ServerLabel: s.UUID}})
	return errors.Join(failed, err)
}

// reserve returns the volume of a server, whose label is whether the server ran before it was stopped. Its directory
// is empty, or has the server's files already.
func (i *Importer) reserve(ctx context.Context, s Server) (v v1.VolumeView, err error) {
	found, err := i.volume(ctx, s.UUID)
	if err != nil {
		return v, err
	}
	if found == nil {
		i.o.Step("create the volume")
		labels := map[string]string{egg.ServerLabel: s.UUID, Label: stopped}
		if s.Runs {
			labels[Label] = ran
		}
		if v, err = i.o.Berth.Volumes().Create(ctx, v1.VolumeSpec{Labels: labels}); err != nil {
			return v, err
		}
		found = &v
	}
	v = *found
	from := i.folder(s.UUID)
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return v, nil // it was renamed
	}
	err = await(ctx, readyTime, "berth does not create the directory of the volume", func(ctx context.Context) (bool, error) {
		v, err = i.o.Berth.Volumes().Get(ctx, v.VolumeID)
		return v.Ready, err
	})
	if err != nil {
		return v, err
	}
	if err := sameMount(from, v.Path); err != nil { // the server has not been stopped
		return v, errors.Join(err, i.o.Berth.Volumes().Delete(ctx, v.VolumeID))
	}
	return v, nil
}

// move renames a folder to a place where nothing or an empty folder is. It does nothing if that was done before.
func move(from, to string) error {
	info, err := os.Lstat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		_, err = os.Lstat(to)
		return err
	case err != nil:
		return err
	case !info.IsDir():
		return &os.PathError{Op: "rename", Path: from, Err: syscall.ENOTDIR}
	}
	if err := unix.Rename(from, to); err != nil { // os.Rename replaces no folder
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return errors.Join(config.SyncFolder(filepath.Dir(to)), config.SyncFolder(filepath.Dir(from)))
}

// awaitStart waits until a server starts in berth.
func (i *Importer) awaitStart(ctx context.Context, uuid string) error {
	return await(ctx, readyTime, "berth does not start it", func(ctx context.Context) (bool, error) {
		c, err := i.o.Berth.Containers().Get(ctx, uuid)
		if err == nil && c.State == v1.Failed {
			err = fmt.Errorf("berth cannot start it: %s", c.Message)
		}
		return c.State == v1.Starting || c.State == v1.Running, err
	})
}

// Undo gives a server back to wings, stopped: wings creates its container at the next start. Backups that berth has
// made stay with berth. It continues where an earlier call has ended.
func (i *Importer) Undo(ctx context.Context, uuid string) error {
	object, err := i.o.Panel.Server(ctx, uuid)
	if err != nil {
		return fmt.Errorf("the panel: %w", err)
	}
	v, err := i.volume(ctx, uuid)
	switch {
	case err != nil:
		return err
	case v == nil:
		return fmt.Errorf("berth has no volume of %s: it was not imported, or is with wings again", uuid)
	case len(v.UsedBy) > 1 || len(v.UsedBy) == 1 && v.UsedBy[0] != uuid:
		return fmt.Errorf("other containers use the volume: %v", v.UsedBy)
	}
	back := i.folder(uuid)
	if _, err := os.Lstat(v.Path); err == nil { // else it was renamed
		if err := sameMount(v.Path, filepath.Dir(back)); err != nil {
			return err
		}
	}
	if err := i.removeContainer(ctx, object); err != nil {
		return fmt.Errorf("berth: %w", err)
	}
	i.o.Step("rename back")
	if err := move(v.Path, back); err != nil {
		return err
	}
	i.o.Step("delete the volume")
	return i.o.Berth.Volumes().Delete(ctx, v.VolumeID)
}

// removeContainer stops and deletes the container of a server, and its ports.
func (i *Importer) removeContainer(ctx context.Context, object egg.Server) error {
	containers := i.o.Berth.Containers()
	gone := func(err error) bool { return client.StatusOf(err) == http.StatusNotFound }
	i.o.Step("stop in berth")
	if _, err := containers.Do(ctx, object.UUID, client.Stop); err != nil && !gone(err) {
		return err
	}
	err := await(ctx, i.o.Stop, "", func(ctx context.Context) (bool, error) {
		c, err := containers.Get(ctx, object.UUID)
		return gone(err) || err == nil && !c.State.Active(), nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		_, err = containers.Do(ctx, object.UUID, client.Kill)
	}
	if err != nil && !gone(err) {
		return err
	}
	i.o.Step("delete in berth")
	err = await(ctx, readyTime, "the container is not deleted", func(ctx context.Context) (bool, error) {
		_, err := containers.Delete(ctx, object.UUID, client.DeleteOptions{})
		if gone(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return err
	}
	i.o.Step("remove the ports")
	spec, _ := object.Spec(egg.Host{}, nil)
	var ports []v1.PortRef
	for _, p := range spec.Ports {
		ports = append(ports, v1.PortRef{IP: p.IP, Port: p.Port, Protocol: p.Protocol})
	}
	if len(ports) == 0 {
		return nil
	}
	_, err = i.o.Berth.Ports().DeleteAll(ctx, ports)
	return err
}
