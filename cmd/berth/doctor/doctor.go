package doctor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/cmd/berth/config"
	"berth/runtime"
	"berth/runtime/docker"
	"berth/runtime/kubernetes"
	"berth/store"
)

// Status is the outcome of a check. A host with warnings works; berth does not work as
// it should after a failure.
type Status string

// The statuses, from good to bad.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
)

// Result is the outcome of one check.
type Result struct {
	Check   string `json:"check"`
	Status  Status `json:"status"`
	Message string `json:"message"`          // the fact
	Remedy  string `json:"remedy,omitempty"` // what to do; never empty unless Status is OK
}

// Report is the outcome of all checks.
type Report struct {
	Version string   `json:"version"` // of this program
	Status  Status   `json:"status"`  // the worst of the results
	Results []Result `json:"results"`
}

// Options are what is checked.
type Options struct {
	Version string
	Config  config.Loaded  // with the defaults where it could not be read
	Invalid error          // why Config could not be loaded
	Daemon  *client.Client // nil if Config does not name its address
	Time    time.Duration  // bounds each check; 0: 10 s
	Root    string         // of the host's /proc, /run and disks, for tests; empty: /
}

// examination is one run of all checks. What several of them need is asked once.
type examination struct {
	Options
	engine func() (runtime.EngineInfo, error)
	daemon func() daemonState
	panel  func() (*http.Response, error)
}

func newExamination(ctx context.Context, o Options) *examination {
	o.Time = cmp.Or(o.Time, 10*time.Second)
	e := &examination{Options: o}
	e.engine = sync.OnceValues(func() (runtime.EngineInfo, error) {
		ctx, cancel := context.WithTimeout(ctx, o.Time)
		defer cancel()
		if e.kubernetes() {
			k := o.Config.Config.Kubernetes
			c := kubernetes.Config{Kubeconfig: k.Kubeconfig, KubeletCA: k.KubeletCA, OwnClaims: k.VolumeClass != "",
				Namespace: cmp.Or(k.Namespace, kubernetes.InClusterNamespace()),
				StoreID:   store.IDOf(e.path(filepath.Join(o.Config.Config.Storage.DataPath, "store")))}
			if k.Ports == v1.PortsService {
				c.Balancer = &kubernetes.Balancer{}
			}
			return kubernetes.Info(ctx, c)
		}
		return docker.Info(ctx, o.Config.Config.Docker.Host)
	})
	e.daemon = sync.OnceValue(func() daemonState {
		ctx, cancel := context.WithTimeout(ctx, o.Time)
		defer cancel()
		s := askDaemon(ctx, o.Daemon)
		dir := filepath.Join(o.Config.Config.Storage.DataPath, "store")
		if err := store.CheckLock(e.path(dir)); s.answers && (err == nil || errors.Is(err, fs.ErrNotExist)) {
			s.away = dir
		}
		return s
	})
	e.panel = sync.OnceValues(func() (*http.Response, error) {
		ctx, cancel := context.WithTimeout(ctx, o.Time)
		defer cancel()
		return askPanel(ctx, o.Config.Config.Remote, o.Version)
	})
	return e
}

// kubernetes reports whether the engine is a cluster.
func (e *examination) kubernetes() bool { return e.Config.Config.Engine == v1.EngineKubernetes }

// Run runs every check at the same time. A check that does not end in time fails; it is
// not waited for, because a system call on a disk that hangs cannot be interrupted.
func Run(ctx context.Context, o Options) Report { return newExamination(ctx, o).run(ctx, checks()) }

func (e *examination) run(ctx context.Context, table []check) Report {
	// The checks that wait for a shared answer need time after it.
	limit := e.Time + time.Second
	late := time.NewTimer(limit)
	defer late.Stop()
	results := make([]chan Result, len(table))
	for i, c := range table {
		results[i] = make(chan Result, 1)
		go func() {
			ctx, cancel := context.WithTimeout(ctx, e.Time)
			defer cancel()
			results[i] <- c.run(ctx, e)
		}()
	}
	report := Report{Version: e.Version, Status: OK}
	expired := false
	for i, c := range table {
		var r Result
		if !expired {
			select {
			case r = <-results[i]:
			case <-late.C:
				expired = true
			}
		}
		if expired {
			r = ended(results[i], limit)
		}
		r.Check = c.name
		report.add(r)
	}
	return report
}

// ended returns the result in ch, or that of a check that takes too long.
func ended(ch <-chan Result, limit time.Duration) Result {
	select {
	case r := <-ch:
		return r
	default:
		return failed("did not end within "+limit.String(), "look for a disk or a program that hangs")
	}
}

func (r *Report) add(result Result) {
	r.Results = append(r.Results, result)
	if result.Status == Fail || result.Status == Warn && r.Status == OK {
		r.Status = result.Status
	}
}

func ok(message string) Result { return Result{Status: OK, Message: message} }
func warning(message, remedy string) Result {
	return Result{Status: Warn, Message: message, Remedy: remedy}
}
func failed(message, remedy string) Result {
	return Result{Status: Fail, Message: message, Remedy: remedy}
}

// check is one row of the table.
type check struct {
	name string
	run  func(ctx context.Context, e *examination) Result
}

// checks returns the table of all checks, in the order of the report.
func checks() []check {
	return []check{
		{"configuration", checkConfiguration},
		{"tls", checkTLS},
		{"daemon", checkDaemon},
		{"store", checkStore},
		{"disk", checkDisk},
		{"volumes", checkVolumes},
		{"engine", checkEngine},
		{"starts", checkStarts},
		{"limits", checkLimits},
		{"firewall", checkFirewall},
		{"clock", checkClock},
		{"kernel", checkKernel},
		{"panel", checkPanel},
		{"backups", checkBackups},
		{"sftp", checkSFTP},
	}
}
