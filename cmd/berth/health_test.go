package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/server"
	v1 "berth/api/v1"
	"berth/cmd/berth/config"
	"berth/controller/container"
	"berth/runtime"
	"berth/runtime/docker"
	hostvolume "berth/runtime/volume"
	"berth/store"
)

// TestUnwritableStoreIsLoggedOnce logs the begin and the end of a failure, once each.
func TestUnwritableStoreIsLoggedOnce(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	w := storeComponent()
	storeIn := func(v1.Condition) error { return nil }
	w.observe(nil, log, storeIn)
	require.Empty(t, text.String())
	for range 3 {
		w.observe(store.ErrDiskFull, log, storeIn)
	}
	require.Equal(t, 1, strings.Count(text.String(), "\n"))
	require.Regexp(t, `level=ERROR msg="the store cannot be written: .*" err="disk is full"`, text.String())
	text.Reset()
	for range 3 {
		w.observe(nil, log, storeIn)
	}
	require.Equal(t, 1, strings.Count(text.String(), "\n"))
	require.Contains(t, text.String(), `level=INFO msg="the store can be written again" after=`)
}

// TestUnreadyStore: GET /readyz needs no token, so it logs no failure of the store.
func TestUnreadyStore(t *testing.T) {
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	var log bytes.Buffer
	d := &daemon{store: s, log: slog.New(slog.NewTextHandler(&log, nil))}
	require.NotContains(t, d.unready(), "store: not writable")
	require.NoError(t, s.Close())
	require.Contains(t, d.unready(), "store: not writable")
	require.Empty(t, log.String())
}

// TestNodeBeforeEngineVersion: an engine that answered the first check, and not yet the question
// for its version, is not reported with an empty one.
func TestNodeBeforeEngineVersion(t *testing.T) {
	volumes, err := hostvolume.New(t.TempDir(), hostvolume.Options{})
	require.NoError(t, err)
	c := v1.Config{Engine: v1.EngineDocker, Storage: v1.StorageConfig{HardLimit: v1.HardLimitAuto}}
	d := &daemon{host: host{engine: &docker.Engine{}, volumes: volumes}, settings: config.NewSettings(config.Loaded{Config: c}, nil)}
	n := newNode(d)
	require.False(t, n.view().Features["hard_limits"], "they are configured, and not in force")
	d.health.Store(&health{at: time.Now()})
	require.Equal(t, v1.NodeEngine{Name: "docker", Lacks: []string{"placement"}}, n.view().Engine)
	n.engine.Store(&runtime.EngineInfo{Version: "28.1"})
	require.Equal(t, v1.NodeEngine{Name: "docker", Lacks: []string{"placement"}, Version: "28.1", Reachable: true}, n.view().Engine)
	d.health.Store(&health{at: time.Now(), err: errors.New("no answer")})
	require.False(t, n.view().Engine.Reachable)

	n.engine.Store(&runtime.EngineInfo{Version: "1.37.2", Machines: []runtime.Machine{{Name: "n2", Ready: true}, {Name: "n1", Ready: true, Closed: true, CPUs: 2}, {Name: "n3", Memory: 1}}})
	require.Equal(t, []v1.EngineMachine{{Name: "n3", Memory: 1}, {Name: "n1", Ready: true, Closed: true, CPUs: 2}, {Name: "n2", Ready: true}}, n.view().Engine.Machines)
	n.engine.Store(&runtime.EngineInfo{Machines: make([]runtime.Machine, v1.MaxMachines+1)})
	require.Len(t, n.view().Engine.Machines, v1.MaxMachines)

	d.machines = func() []runtime.Machine { return []runtime.Machine{{Name: "n1", Closed: true}} }
	require.Equal(t, []v1.EngineMachine{{Name: "n1", Closed: true}}, n.view().Engine.Machines, "as they are watched")
	d.machines = func() []runtime.Machine { return nil }
	require.Len(t, n.view().Engine.Machines, v1.MaxMachines, "while nobody watches, as they were listed")
}

// TestDisksOfClaims: the space of each claim is that of its own directory.
func TestDisksOfClaims(t *testing.T) {
	c := v1.Defaults()
	c.Storage.DataPath = t.TempDir()
	c.Storage.VolumesPath = c.VolumesIn("volumes")
	c.Kubernetes.Claims = map[string]v1.VolumeClaim{"fast": {Claim: "berth-fast"}, "lost": {Claim: "berth-lost"}}
	require.NoError(t, os.MkdirAll(c.VolumesIn("fast"), 0o755))
	disks := disksOf(c, diskSpace)
	require.Positive(t, disks.Data.Total)
	require.Equal(t, disks.Data.Total, disks.Claims["fast"].Total)
	require.Zero(t, disks.Volumes.Total, "there is no such directory")
	require.Equal(t, v1.DiskSpace{}, disks.Claims["lost"])
	require.Len(t, disks.Claims, 2)
}

func TestStoreReason(t *testing.T) {
	require.Equal(t, "store: the disk is full", storeReason(fmt.Errorf("%w: %w", store.ErrFailed, store.ErrDiskFull)))
	require.Equal(t, "store: not writable", storeReason(store.ErrFailed))
}

// TestConditionsWaitForTheStore: what cannot be stored is stored at a later check, once.
func TestConditionsWaitForTheStore(t *testing.T) {
	var got []string
	var broken error
	log := slog.New(slog.DiscardHandler)
	disk, engine := storeComponent(), engineComponent()
	storeIn := func(c v1.Condition) error {
		if broken == nil {
			got = append(got, c.Reason)
		}
		return broken
	}
	engine.observe(nil, log, storeIn)
	engine.observe(nil, log, storeIn)
	require.Equal(t, []string{"Answers"}, got)
	broken = errors.New("broken")
	for range 3 {
		disk.observe(store.ErrDiskFull, log, storeIn)
		engine.observe(broken, log, storeIn)
	}
	require.Len(t, got, 1)
	broken = nil
	disk.observe(store.ErrDiskFull, log, storeIn)
	engine.observe(errors.New("away"), log, storeIn)
	disk.observe(nil, log, storeIn)
	require.Equal(t, []string{"Answers", "NotWritable", "EngineUnreachable", "Writable"}, got)
}

func TestConditionsNameTheDuration(t *testing.T) {
	var got v1.Condition
	log := slog.New(slog.DiscardHandler)
	storeIn := func(c v1.Condition) error { got = c; return nil }
	w := engineComponent()
	w.observe(nil, log, storeIn)
	require.Equal(t, "the engine answers again", got.Message, "berth has just started")
	w.observe(errors.New("away"), log, storeIn)
	w.since = time.Now().Add(-2*time.Minute - 38*time.Second)
	w.observe(nil, log, storeIn)
	require.Regexp(t, `^the engine answers again, after 2m38(\.\d+)?s$`, got.Message)
	storeComponent().observe(store.ErrDiskFull, log, storeIn)
	require.Equal(t, "store: the disk is full: requests are refused, except stop and kill", got.Message)
}

// TestLateCheck: a check that a busy host delays does not count as an engine that does not answer.
func TestLateCheck(t *testing.T) {
	d := &daemon{began: time.Now()}
	require.Equal(t, server.EngineHealth{Since: d.began}, d.engineHealth())
	since := time.Now().Add(-time.Hour)
	d.health.Store(&health{at: time.Now().Add(-20 * time.Second), since: since})
	require.Equal(t, server.EngineHealth{Reachable: true, Since: since}, d.engineHealth())
	d.health.Store(&health{at: time.Now(), err: errors.New("away"), since: since})
	require.Equal(t, server.EngineHealth{Since: since}, d.engineHealth())
}

// TestWatchdog reads the notifications as the service manager does.
func TestWatchdog(t *testing.T) {
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", socket.LocalAddr().String())
	t.Setenv("WATCHDOG_USEC", "30000")
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	d := &daemon{store: s, log: slog.New(slog.DiscardHandler), settings: config.NewSettings(config.Loaded{}, func() (config.Loaded, error) { return config.Loaded{}, nil })}
	read := func() string {
		b := make([]byte, 256)
		require.NoError(t, socket.SetReadDeadline(time.Now().Add(time.Minute)))
		n, err := socket.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	d.reload()
	require.True(t, strings.HasPrefix(read(), "RELOADING=1"))
	require.Equal(t, "READY=1", read())

	ctx, cancel := context.WithCancel(t.Context())
	fed := make(chan error, 1)
	go func() { fed <- d.feedWatchdog(ctx) }()
	require.Equal(t, "WATCHDOG=1", read())
	require.NoError(t, s.Close())
	require.Equal(t, "WATCHDOG=1", read(), "a store that refuses writes is not a reason to restart")
	cancel()
	require.NoError(t, <-fed)

	require.True(t, d.works())
	d.health.Store(&health{at: time.Now().Add(-healthStale), err: errors.New("away")})
	require.False(t, d.works(), "the loop that checks the engine has stopped")
	d.health.Store(&health{at: time.Now(), err: errors.New("away")})
	require.True(t, d.works(), "an absent engine is not a reason to restart")
}

// TestPullSpace requires that no image is pulled while the engine's disk has less free space than
// the reserve.
func TestPullSpace(t *testing.T) {
	c := v1.Defaults()
	n := &node{d: &daemon{settings: config.NewSettings(config.Loaded{Config: c}, nil)}}
	require.NoError(t, n.pullSpace(), "its disk is unknown yet")
	n.engine.Store(&runtime.EngineInfo{Root: t.TempDir()})
	c.Docker.PullReserve = 1 << 60
	n.d.settings = config.NewSettings(config.Loaded{Config: c}, nil)
	err := n.pullSpace()
	require.ErrorIs(t, err, runtime.ErrNoSpace)
	require.ErrorContains(t, err, "docker.pull_reserve")
	c.Docker.PullReserve = 0
	n.d.settings = config.NewSettings(config.Loaded{Config: c}, nil)
	require.NoError(t, n.pullSpace())

	c.Docker.PullReserve, c.Docker.ImagesKept = -1, v1.Duration(time.Millisecond)
	faults := c.Validate()
	require.ErrorContains(t, faults.Err(), "docker.image_retention: must be at least 1s")
}

// TestOwnVolume requires that a volume is given to the user of its container, that root's containers leave it
// as it is, and that the message about what is left names the first entry and a remedy.
func TestOwnVolume(t *testing.T) {
	c := v1.Defaults()
	c.Storage.DataPath = t.TempDir()
	c.Complete()
	d, err := newDaemon(config.NewSettings(config.Loaded{Config: c}, nil), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer d.store.Close()
	path := d.volumes.Path("v")
	require.NoError(t, os.MkdirAll(path, 0o755))
	require.NoError(t, os.WriteFile(path+"/f", nil, 0o600))
	own := func(uid, gid int, others ...int) string {
		reason, err := d.ownVolume(t.Context(), "v", container.Accounts{Account: runtime.Account{UID: uid, GID: gid}, Others: others})
		require.NoError(t, err)
		return reason
	}
	owner := func() uint32 {
		info, err := os.Stat(path + "/f")
		require.NoError(t, err)
		return info.Sys().(*syscall.Stat_t).Uid
	}
	require.Empty(t, own(1000, 1001))
	require.EqualValues(t, 1000, owner())
	require.Empty(t, own(0, 0))
	require.Empty(t, own(-1, 0), "the engine does not know it")
	require.EqualValues(t, 1000, owner())
	require.Equal(t, "the user 7:8 of the container cannot write 2 entries of its volume, the first: the folder of the volume, "+
		"which belongs to the user 1000 of another container on this volume: use the same user for both", own(7, 8, 1000))
	require.Empty(t, own(7, 8))
	require.EqualValues(t, 7, owner())
	require.Equal(t, "operation not permitted", causeText(&fs.PathError{Op: "chown", Path: "/secret", Err: syscall.EPERM}))
}

// TestDiskThatHangs: a file system that does not answer delays the figures of no other.
func TestDiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int32
		answers := make(chan bool)
		measure := bounded(slog.New(slog.DiscardHandler), func(path string) v1.DiskSpace {
			if path == "hangs" {
				begun.Add(1)
				<-answers
			}
			return v1.DiskSpace{Total: 1}
		})
		for range 3 {
			require.Zero(t, measure("hangs"))
			require.NotZero(t, measure("other"))
		}
		require.EqualValues(t, 1, begun.Load(), "it is not asked again meanwhile")
		answers <- true
		synctest.Wait()
		require.NotZero(t, measure("hangs"))
	})
}
