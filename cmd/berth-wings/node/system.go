package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/procfs"
)

// system is GET /api/system, and with ?v=2 what Pterodactyl's page of a node shows. The version is the
// bridge's: the panel compares it with the newest release.
func (n *Node) system(c *call) error {
	h := n.host.Load()
	if c.URL.Query().Get("v") != "2" {
		return c.answer(200, map[string]any{"architecture": h.Arch, "cpu_count": h.CPUs,
			"kernel_version": h.Kernel, "os": "linux", "version": n.o.Version})
	}
	total, runs := 0, 0
	for phase, count := range h.Containers {
		if total += count; phase.Active() {
			runs += count
		}
	}
	return c.answer(200, map[string]any{"version": n.o.Version,
		"docker": map[string]any{"version": h.Engine.Version, "cgroups": map[string]any{"driver": "", "version": h.Engine.CgroupVersion},
			"containers": map[string]any{"total": total, "running": runs, "paused": 0, "stopped": total - runs},
			"storage":    map[string]any{"driver": h.Engine.StorageDriver, "filesystem": ""}, "runc": map[string]any{"version": ""}},
		"system": map[string]any{"architecture": h.Arch, "cpu_threads": h.CPUs, "memory_bytes": h.Memory,
			"kernel_version": h.Kernel, "os": h.OS, "os_type": "linux"}})
}

// processor has the times of the host's processors when they were read last.
type processor struct {
	mu          sync.Mutex
	total, idle float64
}

// percent returns how busy the processors were since the last call. The guests' times are in the others.
func (p *processor) percent(t procfs.CPUStat) float64 {
	idle := t.Idle + t.Iowait
	total := idle + t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ + t.Steal
	p.mu.Lock()
	defer p.mu.Unlock()
	all, rest := total-p.total, idle-p.idle
	p.total, p.idle = total, idle
	if all <= 0 {
		return 0
	}
	return 100 * (1 - rest/all)
}

// utilization is GET /api/system/utilization: the host's, in bytes and percent.
func (n *Node) utilization(c *call) error {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return err
	}
	memory, e1 := proc.Meminfo()
	load, e2 := proc.LoadAvg()
	stat, e3 := proc.Stat()
	if err := errors.Join(e1, e2, e3); err != nil {
		return err
	}
	bytes := func(p *uint64) uint64 { // nil: this kernel does not have it
		if p == nil {
			return 0
		}
		return *p
	}
	total, swap := bytes(memory.MemTotalBytes), bytes(memory.SwapTotalBytes)
	disk := n.host.Load().Disk.Volumes
	return c.answer(200, map[string]any{"memory_total": total, "memory_used": total - bytes(memory.MemAvailableBytes),
		"swap_total": swap, "swap_used": swap - bytes(memory.SwapFreeBytes),
		"load_average1": load.Load1, "load_average5": load.Load5, "load_average15": load.Load15,
		"cpu_percent": n.processor.percent(stat.CPUTotal), "disk_total": disk.Total, "disk_used": disk.Total - disk.Free,
		"disk_details": []map[string]any{{"device": "", "mountpoint": "", "total_space": disk.Total,
			"used_space": disk.Total - disk.Free, "tags": []string{"Data"}}}})
}

// ips is GET /api/system/ips, for the form that adds allocations.
func (n *Node) ips(c *call) error {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	list := []string{}
	for _, a := range addresses {
		if ip, is := a.(*net.IPNet); is && !ip.IP.IsLinkLocalUnicast() {
			list = append(list, ip.IP.String())
		}
	}
	return c.answer(200, map[string]any{"ip_addresses": list})
}

// dockerDisk is GET /api/system/docker/disk. berth removes unused images by itself and publishes no
// sizes, so they are 0.
func (n *Node) dockerDisk(c *call) error {
	return c.answer(200, map[string]int64{"containers_size": 0, "images_total": 0, "images_active": 0, "images_size": 0,
		"build_cache_size": 0})
}

// prune is DELETE /api/system/docker/image/prune. berth removes unused images by itself: there is
// nothing left to do.
func (n *Node) prune(c *call) error {
	return c.answer(200, map[string]any{"ImagesDeleted": nil, "SpaceReclaimed": 0})
}

// diagnostics is GET /api/diagnostics: a report for an administrator.
func (n *Node) diagnostics(c *call) error {
	h := n.host.Load()
	var b strings.Builder
	fmt.Fprintf(&b, "berth-wings %s\nberth %s on %s, %s, %s\n", n.o.Version, h.Version, h.OS, h.Kernel, h.Arch)
	fmt.Fprintf(&b, "engine: %s %s, storage %s, cgroup %s, reachable: %t\n",
		h.Engine.Name, h.Engine.Version, h.Engine.StorageDriver, h.Engine.CgroupVersion, h.Engine.Reachable)
	fmt.Fprintf(&b, "panel: %s\nservers: %d\n", n.config().Remote, len(n.all()))
	for _, condition := range h.Conditions {
		fmt.Fprintf(&b, "%s: %s %s\n", condition.Type, condition.Status, condition.Message)
	}
	fmt.Fprintln(&b, "Run berth doctor on the host for more.")
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(c.w, b.String())
	return nil
}

// update is POST /api/update: an administrator has saved the node. A changed address or port needs a
// restart.
func (n *Node) update(c *call) error {
	var object json.RawMessage
	if err := c.decode(&object); err != nil {
		return err
	}
	if n.config().IgnorePanelConfigUpdate {
		return c.answer(200, map[string]bool{"applied": false})
	}
	next, err := n.file.Load().Update(object, n.o.Environ)
	if err != nil {
		return refuse(400, "The node does not work with these settings: %s", err)
	}
	if err := next.Save(); err != nil {
		return err
	}
	n.file.Store(next)
	n.o.Panel.Become(Identity(n.o.Version, next.Config))
	return c.answer(200, map[string]bool{"applied": true})
}
