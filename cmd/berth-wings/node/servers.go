package node

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	"berth/api/client"
	"berth/api/egg"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/panel"
)

// listServers is GET /api/servers.
func (n *Node) listServers(c *call) error {
	list := []view{}
	for _, s := range n.all() {
		list = append(list, s.view())
	}
	return c.answer(200, list)
}

// getServer is GET /api/servers/:s. The panel waits a second for it: it is answered from memory.
func (n *Node) getServer(c *call) error {
	return c.answer(200, c.server.view())
}

// createServer is POST /api/servers. The panel has the server already, and is asked for it before the
// answer; the installation goes on after it.
func (n *Node) createServer(c *call) error {
	var r struct {
		UUID  string `json:"uuid"`
		Start bool   `json:"start_on_completion"`
	}
	if err := c.decode(&r); err != nil {
		return err
	}
	if !egg.IsServerUUID(r.UUID) {
		return errInvalid
	}
	object, err := n.o.Panel.Server(c.Context(), r.UUID)
	if err != nil {
		return err
	}
	n.mu.Lock()
	s := n.servers[r.UUID]
	if s == nil {
		s = newServer(object)
		n.servers[r.UUID] = s
	}
	n.mu.Unlock()
	s.set(object)
	if err := s.beginInstall(); err != nil {
		return c.done(202, nil) // the request was repeated
	}
	next := install
	if r.Start {
		next = installAndStart
	}
	if err := n.accept(n.ctx, s, taskLabel, string(next)); err != nil { // a panel that gives up may repeat the request
		s.endInstall()
		return err
	}
	n.background(func(ctx context.Context) { n.work(ctx, s, next) })
	return c.done(202, nil)
}

// task is work for a server that was answered before it was done. It is a label of the server's volume
// until it is done, so that it survives the end of the bridge.
type task string

// The tasks, and their label.
const (
	install         task = "install"
	installAndStart task = "install and start"
	reinstall       task = "reinstall"        // and behind a colon the id of its request
	report          task = "report"           // the end of an installation that berth has begun
	reportAgain     task = "report reinstall" // as a further one
	removal         task = "delete"

	taskLabel = "wings.task"
)

// kind returns a task without the id of its request.
func (t task) kind() task {
	kind, _, _ := strings.Cut(string(t), ":")
	return task(kind)
}

// mark sets a label of the volume of a server, or removes it if the value is empty. What a label records
// survives the end of the bridge. None follows the server's removal.
func (n *Node) mark(ctx context.Context, s *server, label, value string) error {
	s.marking.Lock()
	defer s.marking.Unlock()
	if s.removed {
		return errRemoved
	}
	if label == taskLabel && value == "" && s.isInstalling() { // the installation has a task of its own
		return nil
	}
	volume, err := n.volumeOf(ctx, s)
	if err != nil {
		return err
	}
	view, err := n.o.Berth.Volumes().Get(ctx, volume)
	if err != nil {
		return err
	}
	labels := maps.Clone(view.Labels)
	if labels[label] = value; value == "" {
		delete(labels, label)
	}
	ctx, cancel := known(ctx)
	defer cancel()
	_, err = n.o.Berth.Volumes().Change(ctx, volume, v1.VolumeChange{Labels: &labels})
	s.removed = err == nil && value == string(removal)
	return err
}

// accept is mark for a request that is answered then. While berth restarts, it waits, and the panel gives up by itself:
// after an error, Pelican would forget a server that it had deleted.
func (n *Node) accept(ctx context.Context, s *server, label, value string) error {
	return n.ask(ctx, s, func() error { return n.mark(ctx, s, label, value) })
}

// retract removes the label of a request that is refused: berth may have recorded it in spite of the error, and the next
// bridge must not carry it out.
func (n *Node) retract(s *server, label string) {
	n.background(func(ctx context.Context) { n.unmark(ctx, s, label) })
}

var errRemoved = refuse(409, "The server is being deleted.")

// resume continues with what a bridge before this one has left. First the panel forgets that servers are
// being installed: the end of those that are is reported afterwards, and others have ended meanwhile.
func (n *Node) resume(ctx context.Context) error {
	if err := n.o.Panel.Reset(ctx); err != nil {
		n.o.Log.Warn("the panel does not reset its servers", "err", err)
	}
	volumes, err := n.o.Berth.Volumes().List(ctx, egg.ServerLabel)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		next, uuid := task(v.Labels[taskLabel]), v.Labels[egg.ServerLabel]
		s := n.find(uuid)
		switch {
		case next == removal:
			n.background(func(ctx context.Context) { n.removeUntilGone(ctx, uuid) })
			continue
		case s == nil && v.Labels[transferLabel] == "":
			continue
		case s == nil:
			s = newServer(egg.Server{UUID: uuid})
		}
		s.volume = v.VolumeID
		if s.suspended() { // since the bridge before this one, or while there was none
			n.stopSuspended(s)
		}
		if v.Labels[transferLabel] != "" {
			n.resumeTransfer(s)
		}
		if next != "" && s.beginInstall() == nil {
			n.background(func(ctx context.Context) { n.work(ctx, s, next) })
		}
		n.resumeBackups(s, v.Labels)
		n.background(func(ctx context.Context) { n.resumePower(ctx, s, v.Labels) })
	}
	return nil
}

// work carries out the installation of a server that beginInstall has reserved, and reports its end.
func (n *Node) work(ctx context.Context, s *server, t task) {
	var err error
	if t != report && t != reportAgain {
		err = n.requestInstall(ctx, s, t)
	}
	if err == nil {
		err = n.awaitInstalled(ctx, s)
	}
	n.complete(ctx, s, t, err)
}

// complete reports the end of an installation.
func (n *Node) complete(ctx context.Context, s *server, t task, err error) {
	if ctx.Err() != nil {
		return // berth goes on, and so does the next bridge
	}
	if err != nil {
		n.o.Log.Error("an installation failed", "server", s.uuid, "err", err)
	}
	s.endInstall() // the panel may start it once it has the report
	report := panel.Installed{Successful: err == nil, Reinstall: t.kind() == reinstall || t == reportAgain}
	_ = n.insist(ctx, s, func() error { return n.o.Panel.ReportInstalled(ctx, s.uuid, report) }) // a refusal is the panel's answer
	s.publish(event{Name: "install completed", Args: []string{""}})
	if ctx.Err() != nil {
		return // the panel may not have the report
	}
	n.unmark(ctx, s, taskLabel)
}

// requestInstall has berth install a server.
func (n *Node) requestInstall(ctx context.Context, s *server, t task) error {
	script := &egg.Script{}
	if !s.get().SkipScripts {
		err := n.insist(ctx, s, func() (err error) {
			*script, err = n.o.Panel.Script(ctx, s.uuid)
			return err
		})
		if err != nil {
			return err
		}
		s.publish(event{Name: "install started", Args: []string{""}})
	}
	power, next := v1.PowerOff, report
	switch {
	case t == installAndStart && !s.suspended():
		power = v1.PowerOn
	case t.kind() == reinstall:
		next = reportAgain
	}
	err := n.ask(ctx, s, func() error { return n.apply(ctx, s, script, power) })
	if err == nil && t.kind() == reinstall && !s.get().SkipScripts {
		err = n.do(ctx, s, order{client.Reinstall, string(t)})
	}
	if err != nil {
		return err
	}
	return n.accept(ctx, s, taskLabel, string(next))
}

// awaitInstalled waits for the end of an installation.
func (n *Node) awaitInstalled(ctx context.Context, s *server) error {
	for {
		phase, change := s.seen()
		view, err := n.o.Berth.Containers().Get(ctx, s.uuid)
		switch {
		case err != nil && client.StatusOf(err)/100 == 4:
			return err
		case err == nil && view.InstallState == v1.Failed:
			return errors.New(cmp.Or(string(view.Message), "the installation failed"))
		case err == nil && view.InstallState != v1.Installing && phase != v1.Installing:
			return nil
		}
		awaitChange(ctx, change)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// awaitChange waits for the next event about a server, which closes change, or for some seconds: events are missed while berth
// restarts.
func awaitChange(ctx context.Context, change <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-change:
	case <-time.After(retryPause):
	}
}

// reportPause is the time until the panel is called again that did not answer for half a minute.
const reportPause = time.Minute

// insist calls the panel until it has carried out or refused something. It returns the refusal, or that ctx ended.
func (n *Node) insist(ctx context.Context, s *server, call func() error) error {
	for {
		err := call()
		if err == nil || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
		n.o.Log.Warn("the panel does not answer", "server", s.uuid, "err", err)
		if panel.IsFinal(err) || !pause(ctx, reportPause) {
			return err
		}
	}
}

// postInstall is POST /api/servers/:s/install.
func (n *Node) postInstall(c *call) error { return n.installAgain(c, install) }

// postReinstall is POST /api/servers/:s/reinstall. Files stay.
func (n *Node) postReinstall(c *call) error { return n.installAgain(c, reinstall+task(":"+c.id)) }

func (n *Node) installAgain(c *call, t task) error {
	s := c.server
	end, err := s.takePower(c.Context(), 0)
	if err == nil {
		if err = s.beginInstall(); err != nil {
			end()
		}
	}
	if err != nil {
		return refuse(409, "Cannot execute server reinstall event while another power action is running.")
	}
	if err := n.accept(c.Context(), s, taskLabel, string(t)); err != nil {
		s.endInstall()
		end()
		n.retract(s, taskLabel)
		return err
	}
	s.endSFTP("")
	n.background(func(ctx context.Context) {
		defer end()
		err := n.insist(ctx, s, func() error { return n.refresh(ctx, s) })
		if err == nil {
			err = n.haltOrKill(ctx, s, 10*time.Second)
		}
		if err != nil {
			n.complete(ctx, s, t, err)
			return
		}
		n.work(ctx, s, t)
	})
	return c.done(202, nil)
}

// haltOrKill stops a server, and kills it after a time.
func (n *Node) haltOrKill(ctx context.Context, s *server, limit time.Duration) error {
	err := n.halt(ctx, s, order{Action: client.Stop}, limit)
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err
	}
	return n.halt(ctx, s, order{Action: client.Kill}, killTime)
}

// postSync is POST /api/servers/:s/sync. It disturbs no running server: limits change at once, the rest at
// the next start; a suspension stops it. It is completed also if the panel gives up meanwhile.
func (n *Node) postSync(c *call) error {
	s := c.server
	if err := n.refresh(n.ctx, s); err != nil {
		return err
	}
	if !s.isInstalling() {
		err := n.ask(n.ctx, s, func() error { return n.apply(n.ctx, s, nil, "") })
		if err != nil {
			return err
		}
	}
	if s.suspended() {
		s.disconnect(func(*claims) bool { return true })
		s.endSFTP("")
		n.stopSuspended(s)
	}
	return c.done(204, nil)
}

// stopSuspended stops a server that is suspended, after the answer.
func (n *Node) stopSuspended(s *server) {
	n.background(func(ctx context.Context) {
		if err := n.haltOrKill(ctx, s, suspendTime); err != nil && ctx.Err() == nil {
			n.o.Log.Error("a suspended server does not stop", "server", s.uuid, "err", err)
		}
	})
}

// deleteServer is DELETE /api/servers/:s. The panel forgets a server even if its node cannot delete it,
// so what berth does not take now is tried again.
func (n *Node) deleteServer(c *call) error {
	s := c.server
	if err := n.accept(c.Context(), s, taskLabel, string(removal)); err != nil {
		n.retract(s, taskLabel)
		return err
	}
	n.mu.Lock()
	delete(n.servers, s.uuid)
	n.mu.Unlock()
	if s.cancelTransfer() {
		s.transferStatus("completed") // another node has it
	}
	s.ended()
	n.background(func(ctx context.Context) { n.removeUntilGone(ctx, s.uuid) })
	return c.done(204, nil)
}

func (n *Node) removeUntilGone(ctx context.Context, uuid string) {
	for {
		gone, err := n.remove(ctx, uuid)
		if gone {
			return
		}
		if err != nil && ctx.Err() == nil {
			n.o.Log.Warn("a server is not deleted yet", "server", uuid, "err", err)
		}
		if !pause(ctx, retryPause) {
			return
		}
	}
}

// remove takes one step to remove the container of a server, its ports, its backups and its volume. It
// reports whether all is gone.
func (n *Node) remove(ctx context.Context, uuid string) (gone bool, err error) {
	spec, err := n.o.Berth.Containers().Spec(ctx, uuid)
	if err == nil {
		_, err = n.o.Berth.Containers().Delete(ctx, uuid, client.DeleteOptions{})
		return false, errors.Join(err, n.removePorts(ctx, spec.Ports, nil))
	}
	if err := ignoreMissing(err); err != nil {
		return false, err
	}
	volumes, err := n.o.Berth.Volumes().List(ctx, egg.ServerLabel+"="+uuid)
	if err != nil {
		return false, err
	}
	for _, v := range volumes {
		if err := n.deleteBackupsOf(ctx, v.VolumeID); err != nil {
			return false, err
		}
		if err := ignoreMissing(n.o.Berth.Volumes().Delete(ctx, v.VolumeID)); err != nil {
			return false, err
		}
	}
	return len(volumes) == 0, n.deleteOldOf(uuid)
}

// logs is GET /api/servers/:s/logs.
func (t tenant) logs(c *call) error {
	size, err := strconv.Atoi(c.URL.Query().Get("size"))
	if err != nil || size < 1 || size > 100 {
		size = 100
	}
	logs, err := t.Containers().Logs(c.Context(), t.s.uuid, client.LogOptions{Tail: size})
	if err != nil {
		return err
	}
	installed, err := t.n.installedAt(c.Context(), t.s)
	if err != nil {
		return err
	}
	return c.answer(200, map[string]any{"data": textsOf(logs, installed)})
}

// installLogs is GET /api/servers/:s/install-logs.
func (t tenant) installLogs(c *call) error {
	logs, err := t.Containers().Logs(c.Context(), t.s.uuid, client.LogOptions{Tail: 10_000, Install: true})
	if err != nil {
		return err
	}
	return c.answer(200, map[string]any{"data": strings.Join(append(textsOf(logs, time.Time{}), ""), "\r\n")})
}

// textsOf returns the lines of a console that are later than a time, without their ends.
func textsOf(logs v1.Logs, after time.Time) []string {
	list := []string{}
	for _, line := range logs.Lines {
		if line.Time.After(after) {
			list = append(list, lineOf(line.Data))
		}
	}
	return list
}

// lineOf returns a line without its end.
func lineOf(text string) string { return strings.TrimRight(text, "\r\n") }
