package node

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"berth/api/client"
	"berth/api/egg"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/panel"
)

// A backup or a restore that the panel has no report of is a label of the server's volume, with the UUID of
// the backup behind the prefix: so the next bridge goes on with it. A backup's value is its adapter. A
// restore's is its mode and, behind a colon, the id of its request, from then on the id that berth has given
// it; oldPrefix and its mode if wings has made the backup; and adapterS3 if it is from there.
const (
	backupLabel  = "wings.backup."
	restoreLabel = "wings.restore."

	adapterNode = "wings"
	adapterS3   = "s3"
)

// The bounds of what a backup leaves out, in bytes but for the lines: those of the file, and berth's.
const (
	maxIgnoreFile  = 32 << 10
	maxIgnoreLines = 256
	maxIgnoreLine  = 1 << 10
	maxIgnore      = 16 << 10
)

var errNoBackup = &refusal{404, "The requested backup was not found on this server.", false}

// backupOf returns a backup of a server.
func (n *Node) backupOf(ctx context.Context, s *server, id string) (v1.BackupView, error) {
	volume, err := n.volumeOf(ctx, s)
	if err != nil {
		return v1.BackupView{}, err
	}
	b, err := n.o.Berth.Backups().Get(ctx, id)
	if err == nil && (b.VolumeID != volume || b.State == v1.JobDeleting) {
		err = errNoBackup
	}
	return b, err
}

// backup is POST /api/servers/:s/backup. berth has the backup before the answer, under the panel's UUID: a
// request that is repeated is the same backup.
func (n *Node) backup(c *call) error {
	var r struct{ Adapter, UUID, Ignore string }
	switch err := c.decode(&r); {
	case err != nil:
		return err
	case !egg.IsServerUUID(r.UUID):
		return refuse(400, "The backup identifier must be a valid UUID.")
	case r.Adapter != adapterNode && r.Adapter != adapterS3:
		return errUnexpected
	}
	s := c.server
	volume, err := n.volumeOf(c.Context(), s)
	if err != nil {
		return err
	}
	request := v1.BackupRequest{Name: "wings", Ignore: n.ignored(c.Context(), volume, r.Ignore)}
	if err := n.accept(c.Context(), s, backupLabel+r.UUID, r.Adapter); err != nil {
		return err
	}
	err = n.ask(c.Context(), s, func() error {
		_, err := n.o.Berth.Backups().Put(c.Context(), volume, r.UUID, request)
		return err
	})
	n.background(func(ctx context.Context) { n.completeBackup(ctx, s, r.UUID, r.Adapter) }) // berth may have it in spite of an error
	return c.done(202, err)
}

// ignored returns the patterns of what a backup leaves out: those of the request, or of a file of the server. One that berth
// would refuse is passed over: a backup with too much is better than none.
func (n *Node) ignored(ctx context.Context, volume, text string) (patterns []string) {
	for _, name := range []string{".pelicanignore", ".pteroignore"} {
		if text != "" {
			break
		}
		if content, err := n.o.Berth.Files().Download(ctx, volume, name); err == nil {
			part, _ := io.ReadAll(io.LimitReader(content, maxIgnoreFile)) // a part is enough
			if text = string(part); len(part) == maxIgnoreFile {
				text = text[:strings.LastIndexByte(text, '\n')+1] // half a pattern would leave out something else
			}
			_ = content.Close()
		}
	}
	left := maxIgnore
	for line := range strings.Lines(text) {
		line = strings.ToValidUTF8(strings.TrimSpace(line), "\uFFFD")
		if line == "" || line[0] == '#' || len(line) > min(maxIgnoreLine, left) || strings.ContainsAny(line, "\x00\r") {
			continue
		}
		if left -= len(line); len(patterns) < maxIgnoreLines {
			patterns = append(patterns, line)
		}
	}
	return patterns
}

// resumeBackups goes on with the backups and restores that a bridge before this one has left.
func (n *Node) resumeBackups(s *server, labels map[string]string) {
	for label, value := range labels {
		if id, is := strings.CutPrefix(label, backupLabel); is {
			n.background(func(ctx context.Context) { n.completeBackup(ctx, s, id, value) })
		}
		if id, is := strings.CutPrefix(label, restoreLabel); is {
			n.background(func(ctx context.Context) { n.resumeRestore(ctx, s, id, value) })
		}
	}
}

// completeBackup waits for the end of a backup, has it in S3 if it is for there, and reports it. berth keeps
// neither one in S3 nor one that failed, nor one that the panel refuses.
func (n *Node) completeBackup(ctx context.Context, s *server, id, adapter string) {
	if !s.beginJob(id) {
		return // the request was repeated
	}
	defer s.endJob(id)
	b, err := n.awaitBackup(ctx, s, id, func(b v1.BackupView) bool { return b.State.Finished() })
	var report panel.Backup
	if err == nil && b.State == v1.JobCompleted {
		kind, sum, _ := strings.Cut(string(b.Checksum), ":")
		report = panel.Backup{Checksum: sum, ChecksumType: kind, Size: *b.Size, Successful: true}
		if adapter == adapterS3 {
			report, err = n.uploadBackup(ctx, id)
		}
	}
	if ctx.Err() != nil {
		return // the next bridge goes on
	}
	if err != nil || !report.Successful {
		n.o.Log.Error("a backup failed", "server", s.uuid, "backup", id, "message", b.Message, "err", err)
	}
	err = n.insist(ctx, s, func() error { return n.o.Panel.ReportBackup(ctx, id, report) })
	if ctx.Err() != nil {
		return
	}
	if isUnknown(err) || !report.Successful || adapter == adapterS3 {
		_ = n.untilDone(ctx, s, func() error { return n.removeBackup(ctx, s, id) }) // a refusal: it is gone, or another server's
	}
	if ctx.Err() != nil {
		return
	}
	n.unmark(ctx, s, backupLabel+id)
	e := object("backup completed", map[string]any{"uuid": id, "is_successful": report.Successful,
		"checksum": report.Checksum, "checksum_type": report.ChecksumType, "file_size": report.Size})
	for _, name := range []string{e.Name, e.Name + ":" + id} { // pages listen to the one or the other
		s.publish(event{Name: name, Args: e.Args, needs: "backup.read"})
	}
}

// isUnknown reports whether the panel does not have what a report is about. That it has the report already
// is another refusal.
func isUnknown(err error) bool {
	var e *panel.Error
	return errors.As(err, &e) && (e.Status == http.StatusForbidden || e.Status == http.StatusNotFound)
}

// awaitBackup waits until a backup fulfils a condition. An error is final.
func (n *Node) awaitBackup(ctx context.Context, s *server, id string, done func(v1.BackupView) bool) (b v1.BackupView, err error) {
	err = n.untilDone(ctx, s, func() error {
		for {
			_, change := s.seen()
			if b, err = n.backupOf(ctx, s, id); err != nil || done(b) {
				return err
			}
			awaitChange(ctx, change)
		}
	})
	return b, err
}

// untilDone calls berth until it has carried out or refused something, or ctx ends.
func (n *Node) untilDone(ctx context.Context, s *server, do func() error) error {
	for {
		err := do()
		var r *refusal
		switch {
		case err == nil, errors.As(err, &r), client.StatusOf(err)/100 == 4 && !isLater(err):
			return err
		case !pause(ctx, retryPause):
			return ctx.Err()
		}
		n.o.Log.Warn("berth does not do something yet", "server", s.uuid, "err", err)
	}
}

// isLater reports whether berth refuses a request only now: it has too many, or is at the same one of an earlier call.
func isLater(err error) bool {
	return client.StatusOf(err) == http.StatusTooManyRequests || has(err, v1.KeyInUse)
}

// ask calls berth until it answers, or ctx ends: a restart of berth fails nothing that a user has requested.
func (n *Node) ask(ctx context.Context, s *server, do func() error) error {
	var answer error
	err := n.untilDone(ctx, s, func() error {
		answer = do()
		if status := client.StatusOf(answer); status/100 == 5 && status != http.StatusServiceUnavailable {
			return nil
		}
		return answer
	})
	return cmp.Or(err, answer)
}

// unmark removes a label of a server. If it stays, the next bridge reports again.
func (n *Node) unmark(ctx context.Context, s *server, label string) {
	if err := n.untilDone(ctx, s, func() error { return n.mark(ctx, s, label, "") }); err != nil && ctx.Err() == nil {
		n.o.Log.Warn("the end of a job is not recorded", "server", s.uuid, "label", label, "err", err)
	}
}

// restore is POST /api/servers/:s/backup/:b/restore. The server is stopped, and stays so.
func (n *Node) restore(c *call) error {
	var r struct {
		Adapter  string `json:"adapter"`
		Truncate bool   `json:"truncate_directory"`
		URL      string `json:"download_url"`
	}
	if err := c.decode(&r); err != nil {
		return err
	}
	s, id, value := c.server, c.PathValue("backup"), v1.RestoreMerge
	if r.Truncate {
		value = v1.RestoreReplace
	}
	end, err := s.takePower(c.Context(), 0)
	if err != nil {
		return refuse(409, "%s", err)
	}
	work := func(ctx context.Context) error { return n.restoreAs(ctx, s, id, value) }
	switch r.Adapter {
	case adapterNode:
		if _, err = n.backupOf(c.Context(), s, id); isNoBackup(err) {
			value = oldPrefix + value
			err = n.hasOld(s, id)
		} else {
			value += ":" + c.id
		}
	case adapterS3:
		var content io.ReadCloser
		if content, err = n.openArchive(r.URL); err == nil {
			ended := end
			end = func() { _ = content.Close(); ended() } // of an answer that was read
		}
		value = adapterS3
		work = func(ctx context.Context) error { return n.restoreArchive(ctx, s, id, content, r.Truncate) }
	default:
		err = errBadJSON
	}
	if err == nil {
		if err = n.accept(c.Context(), s, restoreLabel+id, value); err != nil {
			n.retract(s, restoreLabel+id)
		}
	}
	if err != nil {
		end()
		return err
	}
	n.background(func(ctx context.Context) {
		defer end()
		n.completeRestore(ctx, s, id, func(ctx context.Context) error {
			if err := n.forgetRestore(ctx, s, id); err != nil {
				return err
			}
			return work(ctx)
		})
	})
	return c.done(202, nil)
}

// resumeRestore goes on with a restore. One from S3 that had not extracted everything has ended with the bridge, and has
// changed nothing.
func (n *Node) resumeRestore(ctx context.Context, s *server, id, value string) {
	end, err := s.takePower(ctx, stopTime)
	if err != nil {
		return
	}
	defer end()
	n.completeRestore(ctx, s, id, func(ctx context.Context) error { return n.restoreAs(ctx, s, id, value) })
}

// restoreAs carries out a restore by the value of its label.
func (n *Node) restoreAs(ctx context.Context, s *server, id, value string) error {
	if value == adapterS3 {
		return n.resumeArchive(ctx, s, id)
	}
	if mode, is := strings.CutPrefix(value, oldPrefix); is {
		return n.restoreOld(ctx, s, id, mode)
	}
	return n.restoreBackup(ctx, s, id, value)
}

// resumeArchive goes on with the restore of an archive that has been extracted.
func (n *Node) resumeArchive(ctx context.Context, s *server, id string) error {
	volume, err := n.volumeOf(ctx, s)
	if err != nil {
		return err
	}
	if done, err := n.exchange(ctx, volume, id); done || err != nil {
		return err
	}
	return errors.New("the bridge ended while it restored a backup from S3")
}

// completeRestore stops a server, restores a backup and reports the end.
func (n *Node) completeRestore(ctx context.Context, s *server, id string, work func(context.Context) error) {
	s.endSFTP("")
	err := n.haltOrKill(ctx, s, time.Minute)
	if err == nil {
		err = work(ctx)
	}
	if ctx.Err() != nil {
		return // the next bridge goes on
	}
	if err != nil {
		n.o.Log.Error("a restore failed", "server", s.uuid, "backup", id, "err", err)
	}
	_ = n.insist(ctx, s, func() error { return n.o.Panel.ReportRestored(ctx, id, err) }) // a refusal is the panel's answer
	if ctx.Err() != nil {
		return
	}
	n.unmark(ctx, s, restoreLabel+id)
	s.publish(event{Name: "backup restore completed", Args: []string{""}})
}

// restoreBackup has berth restore a backup, once, and waits for the end.
func (n *Node) restoreBackup(ctx context.Context, s *server, id, value string) error {
	if mode, key, is := strings.Cut(value, ":"); is {
		err := n.untilDone(ctx, s, func() error {
			if _, err := n.backupOf(ctx, s, id); err != nil {
				return err
			}
			return n.keyed(key, func(berth *client.Client) (err error) {
				value, err = berth.Backups().Restore(ctx, id, v1.RestoreRequest{Mode: mode, Stop: true})
				return err
			})
		})
		if err == nil {
			err = n.untilDone(ctx, s, func() error { return n.mark(ctx, s, restoreLabel+id, value) })
		}
		if err != nil {
			return err
		}
	}
	var last v1.RestoreView
	_, err := n.awaitBackup(ctx, s, id, func(b v1.BackupView) bool {
		i := slices.IndexFunc(b.Restores, func(r v1.RestoreView) bool { return r.RestoreID == value })
		if i >= 0 {
			last = b.Restores[i]
		}
		return i < 0 || last.State.Finished()
	})
	if err == nil && last.State != v1.JobCompleted {
		err = errors.New(cmp.Or(last.Message, "the restore is not known any more"))
	}
	return err
}

// deleteBackup is DELETE /api/servers/:s/backup/:b.
func (n *Node) deleteBackup(c *call) error {
	err := n.removeBackup(c.Context(), c.server, c.PathValue("backup"))
	if isNoBackup(err) {
		err = n.deleteOld(c.server, c.PathValue("backup"))
	}
	return c.done(204, err)
}

// removeBackup deletes a backup of a server.
func (n *Node) removeBackup(ctx context.Context, s *server, id string) error {
	b, err := n.backupOf(ctx, s, id)
	if err == nil {
		err = n.o.Berth.Backups().Delete(ctx, b.BackupID)
	}
	return err
}

// deleteAllBackups is DELETE /api/servers/:s/deleteAllBackups.
func (n *Node) deleteAllBackups(c *call) error {
	volume, err := n.volumeOf(c.Context(), c.server)
	if err != nil {
		return err
	}
	return c.done(204, errors.Join(n.deleteBackupsOf(c.Context(), volume), n.deleteOldOf(c.server.uuid)))
}

// deleteBackupsOf deletes the backups of a volume.
func (n *Node) deleteBackupsOf(ctx context.Context, volume string) error {
	list, err := n.o.Berth.Backups().List(ctx, volume)
	for _, b := range list {
		if err == nil {
			err = ignoreMissing(n.o.Berth.Backups().Delete(ctx, b.BackupID))
		}
	}
	return err
}

// downloadBackup is GET /download/backup: a browser follows a link that the panel has signed.
func (n *Node) downloadBackup(c *call) error {
	s, token, err := n.link(c, scopeBackup)
	if err != nil {
		return err
	}
	b, err := n.backupOf(c.Context(), s, token.Backup)
	if isNoBackup(err) {
		return n.downloadOld(c, s, token.Backup)
	}
	if err != nil {
		return err
	}
	content, err := n.o.Berth.Backups().Download(c.Context(), b.BackupID) // a tenant cannot: it has denied files
	if err != nil {
		return err
	}
	defer content.Close()
	c.attach(b.BackupID + ".tar.zst")
	return n.stream(c, content, content.Size)
}
