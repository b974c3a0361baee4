package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/runtime/volume"
	"berth/store"
)

// inbox is Archives that receives, in memory. In S3 it has what is in bucket.
type inbox struct {
	noArchives
	mu     sync.Mutex
	local  map[string]string
	bucket map[string]bool
	full   error
}

func (i *inbox) CheckSpace(int64, int64) error { return i.full }

func (i *inbox) Arrived(b v1.ArrivalBackup) (stored int64, all bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	stored = int64(len(i.local[b.BackupID]))
	return stored, stored > 0 && stored == b.Status.Size
}

func (i *inbox) Receive(_ context.Context, b v1.ArrivalBackup, offset int64, archive io.Reader) error {
	text, err := io.ReadAll(archive)
	i.mu.Lock()
	defer i.mu.Unlock()
	text = append([]byte(i.local[b.BackupID][:offset]), text...)
	switch {
	case err != nil:
		return err
	case b.Spec.Target == v1.TargetS3 && !i.bucket[b.BackupID]:
		return v1.ErrBackupNotFound
	case b.Spec.Target == v1.TargetLocal && int64(len(text)) < b.Status.Size:
		i.local[b.BackupID] = string(text)
	case b.Spec.Target == v1.TargetLocal && fmt.Sprintf("sha256:%x", sha256.Sum256(text)) != b.Status.Checksum:
		return v1.Errorf(v1.InvalidArchive, "The archive is another one")
	case b.Spec.Target == v1.TargetLocal:
		i.local[b.BackupID] = string(text)
	}
	return nil
}

func announcedBackup(id, target, content string) object {
	return object{"backup_id": id, "created_at": "2026-07-15T00:00:00Z", "spec": object{"volume_id": "x", "name": content, "target": target, "moved_by": "x"}, "status": object{"state": "completed", "seq": 7, "size": len(content), "unpacked": 10, "files": 1,
		"leftover": true, "checksum": fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))), "finished_at": "2026-07-15T00:01:00Z"}}
}

// TestArrivalBackups: the archives of backups arrive one by one, each as it was announced, and the backups exist once everything has.
func TestArrivalBackups(t *testing.T) {
	in := &inbox{local: map[string]string{}, bucket: map[string]bool{}}
	m, err := volume.New(filepath.Join(t.TempDir(), "volumes"), volume.Options{UID: -1, GID: -1, Reserved: func(string) error { return nil }})
	require.NoError(t, err)
	h := newHarnessWith(t, func(d *Deps) { d.Archives, d.Files, d.Trees, d.SpoolDir = in, m, m, t.TempDir() })
	h.settings.change(func(c *v1.Config) { c.Backups.MaxPerVolume, c.Backups.MaxSize = 2, 10 })
	local, s3, arrival, volumeID := intent.NewID(), intent.NewID(), intent.NewID(), intent.NewID()
	require.NoError(t, m.Ensure(volumeID))
	body := func(backups ...object) object {
		return object{"arrival_id": arrival, "bytes": 0, "volume": object{}, "backups": backups,
			"container": object{"internal_id": "mc", "image": "busybox:1", "volume_id": volumeID}}
	}
	both := body(announcedBackup(local, "local", "0123456789"), announcedBackup(s3, "s3", "in a bucket"))
	for text, wrong := range map[string]object{
		"backups[0].backup_id: must be a UUID": body(announcedBackup("x", "local", "1")),
		"must be there once":                   body(announcedBackup(local, "local", "1"), announcedBackup(local, "local", "1")),
		"target: must be local or s3":          body(announcedBackup(local, "tape", "1")),
		"created_at: must be a time such as":   body(object{"backup_id": local, "created_at": "yesterday", "spec": object{}, "status": object{}}),
		"the checksum of an archive": body(object{"backup_id": local, "created_at": "2026-07-15T00:00:00Z",
			"spec": object{}, "status": object{"checksum": "sha256:0"}}),
	} {
		answer := h.call("POST", "/arrivals", wrong)
		require.Equal(t, 400, answer.status, text)
		require.Contains(t, answer.raw, text)
	}
	h.refuse(507, "The backups of the target local have reached backups.max_size: delete some of them", "POST", "/arrivals",
		body(announcedBackup(local, "local", "01234567890")))
	many := h.call("POST", "/arrivals", body(announcedBackup(local, "local", "1"), announcedBackup(s3, "local", "1"), announcedBackup(intent.NewID(), "local", "1")))
	require.Equal(t, 429, many.status, many.raw)
	in.full = v1.ErrDiskFull
	require.Equal(t, 507, h.call("POST", "/arrivals", both).status)
	in.full = nil
	h.must("POST", "/arrivals", both)
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return store.Arrivals.SetStatus(tx, arrival, func(s *v1.ArrivalStatus) { s.ImagePresent = true })
	}))
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return store.Volumes.SetStatus(tx, volumeID, func(s *v1.VolumeStatus) { s.Created = true })
	}))
	h.refuse(400, "backups: "+local+" has changed", "POST", "/arrivals", body(announcedBackup(local, "local", "another")))
	full := h.call("PUT", "/volumes/"+h.volume()+"/backups/"+local, object{})
	require.Equal(t, 409, full.status, "its id is taken: %s", full.raw)

	send := func(id, content string) answer {
		return h.do(request{method: "PUT", path: "/arrivals/" + arrival + "/backups/" + id, accept: "-", body: content})
	}
	commit := func() answer {
		tree, err := m.Tree(t.Context(), volumeID, io.Discard, v1.LowPriority)
		require.NoError(t, err)
		return h.call("POST", "/arrivals/"+arrival+"/commit", object{"digest": tree.Digest, "start": false})
	}
	require.Equal(t, 404, send(intent.NewID(), "0123456789").status)
	require.Equal(t, 404, send(s3, "").status)
	in.bucket[s3] = true
	require.Equal(t, 200, send(s3, "").status)
	require.Equal(t, 400, send(local, "0123456780").status)
	require.Equal(t, 200, send(local, "01234").status)
	require.Equal(t, 412, commit().status, "a part of an archive is none")
	announced := h.must("POST", "/arrivals", both).json
	require.Equal(t, []any{object{local: 5.0}, []any{}}, []any{announced["stored"], announced["backups"]})
	require.Empty(t, h.must("GET", "/backups", nil).json["backups"])
	for _, offset := range []string{"-1", "x"} {
		require.Equal(t, 400, send(local+"?offset="+offset, "56789").status)
	}
	require.Equal(t, 200, send(local+"?offset=5", "56789").status)
	require.Equal(t, 200, send(local, "").status, "it is here")
	require.Equal(t, []any{local}, h.must("POST", "/arrivals", both).json["backups"])
	require.Empty(t, h.must("GET", "/backups", nil).json["backups"])
	answer := commit()
	require.Equal(t, "committed", answer.json["state"], answer.raw)
	require.Equal(t, answer.raw, commit().raw)
	require.Len(t, h.must("GET", "/backups?volume="+volumeID, nil).json["backups"], 2)
	b := h.must("GET", "/backups/"+local, nil).json
	require.Equal(t, "completed 0123456789 10 2026-07-15T00:01:00Z 1784073600",
		fmt.Sprintf("%v %v %v %v %.0f", b["state"], b["name"], b["size"], b["finished_at"], b["created_at"]))
	require.Equal(t, 409, send(local, "").status, "the arrival has ended")
	h.refuse(507, "The backups of the target local have reached backups.max_size: delete some of them", "POST", "/volumes/"+h.volume()+"/backups", object{})
}

// held is Trees whose listings are written until release.
type held struct {
	Trees
	begun, release chan struct{}
}

func (h held) Tree(context.Context, string, io.Writer, v1.Priority) (v1.TreeSum, error) {
	select {
	case h.begun <- struct{}{}:
	default:
	}
	<-h.release
	return v1.TreeSum{}, nil
}

// asked is Trees that keep what their last call was given.
type asked struct {
	Trees
	priority v1.Priority
	most     int64 // bytes
}

func (a *asked) Tree(_ context.Context, _ string, _ io.Writer, p v1.Priority) (v1.TreeSum, error) {
	a.priority = p
	return v1.TreeSum{}, nil
}

func (a *asked) Receive(_ context.Context, _ string, _ io.Reader, most int64, p v1.Priority) error {
	a.priority, a.most = p, most
	return nil
}

// TestPriorityOfArrivals: trees are listed and received with the lowest priority until the container is stopped.
func TestPriorityOfArrivals(t *testing.T) {
	trees := &asked{}
	h := newHarnessWith(t, func(d *Deps) { d.Archives, d.Trees, d.SpoolDir = &inbox{}, trees, t.TempDir() })
	arrival, volumeID := intent.NewID(), intent.NewID()
	for stopped, want := range map[bool]v1.Priority{false: v1.LowPriority, true: v1.NormalPriority} {
		h.must("POST", "/arrivals", object{"arrival_id": arrival, "bytes": 0, "volume": object{}, "stopped": stopped,
			"container": object{"internal_id": "mc", "image": "busybox:1", "volume_id": volumeID}})
		require.NoError(t, h.store.Update(func(tx *store.Tx) error {
			return errors.Join(store.Arrivals.SetStatus(tx, arrival, func(s *v1.ArrivalStatus) { s.ImagePresent = true }),
				store.Volumes.SetStatus(tx, volumeID, func(s *v1.VolumeStatus) { s.Created = true }))
		}))
		for _, r := range []request{{method: "GET", path: "/tree"}, {method: "PUT", path: "/content", body: "x"}} {
			trees.priority = -1
			r.path = "/arrivals/" + arrival + r.path
			require.Equal(t, 200, h.do(r).status, r.path)
			require.Equal(t, want, trees.priority, r.path)
		}
	}
}

// TestArrivalIsBounded: what arrives may be a tenth more than was announced, and what the volume may grow by.
func TestArrivalIsBounded(t *testing.T) {
	trees := &asked{}
	h := newHarnessWith(t, func(d *Deps) { d.Archives, d.Trees, d.SpoolDir = &inbox{}, trees, t.TempDir() })
	const announced, limit = 10 << 20, 64 << 20
	for want, volume := range map[int64]object{announced / 10 * 21: {}, announced/10*11 + limit: {"size_limit": limit}} {
		arrival, volumeID := intent.NewID(), intent.NewID()
		h.must("POST", "/arrivals", object{"arrival_id": arrival, "bytes": announced, "volume": volume,
			"container": object{"internal_id": "mc-" + arrival, "image": "busybox:1", "volume_id": volumeID}})
		require.NoError(t, h.store.Update(func(tx *store.Tx) error {
			return errors.Join(store.Arrivals.SetStatus(tx, arrival, func(s *v1.ArrivalStatus) { s.ImagePresent = true }),
				store.Volumes.SetStatus(tx, volumeID, func(s *v1.VolumeStatus) { s.Created = true }))
		}))
		require.Equal(t, 200, h.do(request{method: "PUT", path: "/arrivals/" + arrival + "/content", body: "x"}).status)
		require.Equal(t, want+arrivalSlack, trees.most)
	}
}

// TestListingEndsWithClient: a request for a listing that waits for another one ends with its client.
func TestListingEndsWithClient(t *testing.T) {
	trees := held{begun: make(chan struct{}, 1), release: make(chan struct{})}
	h := newHarnessWith(t, func(d *Deps) { d.Archives, d.Trees, d.SpoolDir = &inbox{}, trees, t.TempDir() })
	arrival, volumeID := intent.NewID(), intent.NewID()
	h.must("POST", "/arrivals", object{"arrival_id": arrival, "bytes": 0, "volume": object{},
		"container": object{"internal_id": "mc", "image": "busybox:1", "volume_id": volumeID}})
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return errors.Join(store.Arrivals.SetStatus(tx, arrival, func(s *v1.ArrivalStatus) { s.ImagePresent = true }),
			store.Volumes.SetStatus(tx, volumeID, func(s *v1.VolumeStatus) { s.Created = true }))
	}))
	get := func(ctx context.Context) {
		req, err := http.NewRequestWithContext(ctx, "GET", h.base+"/arrivals/"+arrival+"/tree", nil)
		if err == nil {
			req.Header.Set("Authorization", "Bearer "+adminToken)
			req.Header.Set("Accept", vendorType)
			_, _ = h.client.Do(req)
		}
	}
	var first sync.WaitGroup
	first.Go(func() { get(t.Context()) })
	waitFor(t, "it did not begin", trees.begun)
	require.Eventually(t, func() bool { // a client may leave before its request is read
		ctx, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer leave()
		get(ctx)
		return strings.Contains(h.must("GET", "/metrics", nil).raw, `berth_http_request_duration_seconds_count{code="503",route="/arrivals/:arrival/tree"}`)
	}, 3*time.Minute, 100*time.Millisecond)
	close(trees.release)
	first.Wait()
}
