package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/controller"
	container "berth/runtime"
)

// The times between two observations of the disks and of the engine, and the limits of one.
const (
	disksEvery    = 5 * time.Second
	diskTimeout   = time.Second // of one file system
	engineEvery   = time.Minute
	engineTimeout = 10 * time.Second
)

// node observes the host and its engine periodically, so that no request waits for an engine
// or a disk that hangs.
type node struct {
	d      *daemon
	host   v1.Node  // the fields that stay the same while the daemon runs
	lacks  []string // of the engine
	disks  atomic.Pointer[v1.NodeDisks]
	engine atomic.Pointer[container.EngineInfo]
}

func newNode(d *daemon) *node {
	var host unix.Utsname
	_ = unix.Uname(&host) // it cannot fail
	n := &node{d: d, lacks: d.lacks(), host: v1.Node{Version: release(), StartedAt: d.began.UTC(), OS: osName("/etc/os-release"),
		Kernel: unix.ByteSliceToString(host.Release[:]), Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		n.host.Memory = int64(info.Totalram) * int64(info.Unit)
	}
	return n
}

// osName returns the name of the distribution in a file such as /etc/os-release.
func osName(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return "Linux"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if value, is := strings.CutPrefix(s.Text(), "PRETTY_NAME="); is {
			if name, err := strconv.Unquote(value); err == nil {
				value = name
			}
			return cmp.Or(strings.Trim(value, "'"), "Linux")
		}
	}
	return "Linux"
}

// view returns the node as it was last observed.
func (n *node) view() v1.Node {
	v, c := n.host, n.d.settings.Current()
	v.Features = c.Features()
	v.Features["hard_limits"] = n.d.volumes.HardLimitErr() == nil // the setting asks for them, and the file system has to have them
	v.Node = c.Remote.Node
	if v.Node == "" {
		v.Node, _ = os.Hostname()
	}
	if disks := n.disks.Load(); disks != nil {
		v.Disk = *disks
	}
	if e := n.engine.Load(); e != nil { // until then the engine is not reachable, so that a client sees no empty version
		v.CPUs, v.Memory = e.CPUs, cmp.Or(e.Memory, v.Memory)
		v.Engine = v1.NodeEngine{Version: e.Version, API: e.API, StorageDriver: e.StorageDriver, CgroupVersion: e.CgroupVersion,
			LiveRestore: e.LiveRestore, StatsError: e.StatsError,
			Reachable: n.d.engineHealth().Reachable, Machines: machinesOf(n.machines(e))}
	}
	v.Engine.Name, v.Engine.Lacks = c.Engine, n.lacks
	return v
}

// machines returns the machines of a cluster: as they are watched, so that a drain shows at once, or as the
// engine has last listed them.
func (n *node) machines(e *container.EngineInfo) []container.Machine {
	if n.d.machines != nil {
		if list := n.d.machines(); list != nil {
			return list
		}
	}
	return e.Machines
}

// machinesOf returns the machines of a cluster as clients see them.
func machinesOf(machines []container.Machine) (list []v1.EngineMachine) {
	for _, m := range machines {
		list = append(list, v1.EngineMachine{Name: m.Name, Ready: m.Ready, Closed: m.Closed, CPUs: m.CPUs, Memory: m.Memory})
	}
	ready := func(m v1.EngineMachine) int {
		if m.Ready {
			return 1
		}
		return 0
	}
	slices.SortFunc(list, func(a, b v1.EngineMachine) int {
		return cmp.Or(ready(a)-ready(b), strings.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), v1.MaxMachines)]
}

// watchDisks observes the disks until ctx ends.
func (n *node) watchDisks(ctx context.Context) error {
	measure := bounded(n.d.log, diskSpace)
	for ctx.Err() == nil {
		n.disks.Store(disksOf(n.d.settings.Current(), measure))
		controller.Sleep(ctx, disksEvery)
	}
	return nil
}

// disksOf measures the space of the directories of a configuration.
func disksOf(c v1.Config, measure func(path string) v1.DiskSpace) *v1.NodeDisks {
	disks := &v1.NodeDisks{Data: measure(c.Storage.DataPath), Volumes: measure(c.Storage.VolumesPath), Claims: map[string]v1.DiskSpace{}}
	for name := range c.Kubernetes.Claims {
		disks.Claims[name] = measure(c.VolumesIn(name))
	}
	return disks
}

// bounded returns measure with a time limit: a network file system whose server is away hangs. The space is unknown then
// until that call returns, and nobody waits for it again; its goroutine cannot be ended. Only one goroutine may call the result.
func bounded(log *slog.Logger, measure func(path string) v1.DiskSpace) func(path string) v1.DiskSpace {
	hanging := map[string]chan v1.DiskSpace{}
	return func(path string) (space v1.DiskSpace) {
		answer, hangs := hanging[path]
		if hangs && len(answer) == 0 {
			return space
		}
		if !hangs {
			answer = make(chan v1.DiskSpace, 1)
			go func() {
				var space v1.DiskSpace
				_ = controller.Catch(log, "measuring a file system", func() error { space = measure(path); return nil }, "path", path)
				answer <- space
			}()
		}
		select {
		case space = <-answer:
			delete(hanging, path)
		case <-time.After(diskTimeout):
			hanging[path] = answer
		}
		return space
	}
}

// diskSpace returns the space of the file system of a directory; zero if it is unknown.
func diskSpace(path string) v1.DiskSpace {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return v1.DiskSpace{}
	}
	return v1.DiskSpace{Total: int64(s.Blocks) * int64(s.Bsize), Free: int64(s.Bavail) * int64(s.Bsize)}
}

// watchEngine asks the engine about itself until ctx ends: each minute, and at once after it
// did not answer.
func (n *node) watchEngine(ctx context.Context) error {
	var since, asked time.Time // when the engine that answered became reachable, and when it answered
	for ctx.Err() == nil {
		health := n.d.engineHealth()
		due := !health.Since.Equal(since) || time.Since(asked) >= engineEvery
		if health.Reachable && due && n.askEngine(ctx) {
			since, asked = health.Since, time.Now()
		}
		controller.Sleep(ctx, healthEvery)
	}
	return nil
}

// askEngine asks the engine about itself, and reports whether it answered.
func (n *node) askEngine(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	info, err := n.d.engine.Info(ctx)
	if err != nil {
		n.d.log.Debug("the engine did not report its version", "err", err)
		return false
	}
	n.engine.Store(&info)
	return true
}

// pullSpace returns runtime.ErrNoSpace if the engine's disk has less than docker.pull_reserve,
// or a tenth, free. A disk that is not visible from here has enough.
func (n *node) pullSpace() error {
	reserve, e := int64(n.d.settings.Current().Docker.PullReserve), n.engine.Load()
	if reserve == 0 || e == nil || e.Root == "" {
		return nil
	}
	space := diskSpace(e.Root)
	if reserve = max(reserve, space.Total/10); space.Total == 0 || space.Free >= reserve {
		return nil
	}
	return fmt.Errorf("%w: the disk of Docker has %.1f GiB free, and a pull needs %.1f GiB (docker.pull_reserve)", container.ErrNoSpace,
		float64(space.Free)/(1<<30), float64(reserve)/(1<<30))
}

// register registers the metrics of the host as berth observes it: the build, the engine, the
// store and the disks.
func (n *node) register(r prometheus.Registerer) {
	gauge := func(name, help string, labels prometheus.Labels, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
	}
	gauge("berth_build_info", "1, with the version of berth and of Go.", prometheus.Labels{"version": version, "goversion": runtime.Version()},
		func() float64 { return 1 })
	gauge("berth_engine_up", "1 if the engine answered the last check, at most 5 s ago; else 0.", nil,
		func() float64 { return number(n.d.engineHealth().Reachable) })
	gauge("berth_store_writable", "1 if the store accepts changes, else 0.", nil,
		func() float64 { return number(n.d.store.Writable() == nil) })
	all := map[string]func(v1.NodeDisks) v1.DiskSpace{
		"data":    func(d v1.NodeDisks) v1.DiskSpace { return d.Data },
		"volumes": func(d v1.NodeDisks) v1.DiskSpace { return d.Volumes },
	}
	for name := range n.d.settings.Current().Kubernetes.Claims {
		all["claims/"+name] = func(d v1.NodeDisks) v1.DiskSpace { return d.Claims[name] }
	}
	for disk, of := range all {
		bytes := func(value func(v1.DiskSpace) int64) func() float64 {
			return func() float64 {
				if disks := n.disks.Load(); disks != nil && of(*disks).Total > 0 {
					return float64(value(of(*disks)))
				}
				return math.NaN() // it is unknown
			}
		}
		labels := prometheus.Labels{"disk": disk}
		gauge("berth_disk_free_bytes", "Free bytes of the file system of data (storage.data_path), volumes (storage.volumes_path) or "+
			"claims/<name> (kubernetes.claims), at most 5 s ago.", labels, bytes(func(s v1.DiskSpace) int64 { return s.Free }))
		gauge("berth_disk_size_bytes", "Size of the file system of data, volumes or claims/<name> in bytes.", labels,
			bytes(func(s v1.DiskSpace) int64 { return s.Total }))
	}
}

func number(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}
