package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	core1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"berth/runtime"
	"berth/runtime/keeper"
)

// Config configures an Engine.
type Config struct {
	Kubeconfig string            // path; empty: the credentials of the pod that berth runs in
	Namespace  string            // of the pods
	StoreID    string            // id of the store that owns the containers
	Holder     string            // names this berth among those with copies of the store, also after a restart; empty: nobody is excluded
	Claim      string            // name of the claim with the volumes, in Namespace
	Volumes    string            // directory at which berth has mounted Claim
	Claims     map[string]string // names of further claims with volumes, by the directories at which berth has mounted them
	OwnClaims  bool              // there are volumes with a claim of their own
	Keeper     string            // path of the program cmd/keeper
	PlainHTTP  []string          // registries that are asked without TLS, as host:port

	// KubeletCA is the path of certificates in PEM that vouch for those of the kubelets, which
	// then are for the nodes' names; empty: the cluster's authority, and their addresses.
	KubeletCA string

	Balancer *Balancer // publishes the ports of containers; nil: the nodes do that

	// Auth returns the configured credentials for a registry; zero, and nil: none.
	Auth func(host string) runtime.Auth

	// RootLimit returns how many bytes a new container may write outside its mounts; 0, and nil:
	// no limit.
	RootLimit func() int64
	TmpSize   int64 // bytes of /tmp and /run of a container with a read-only root; 0: 128 MiB

	// RequestsShare is the part of a memory or processor limit that the scheduler reserves
	// for a pod. 0: 0.5.
	RequestsShare float64
}

// Engine drives the containers of one store. It is safe for concurrent use.
type Engine struct {
	cfg Config
	log *slog.Logger

	connection atomic.Pointer[connection]
	reloading  sync.Mutex                // held while the kubeconfig is read again
	parameters apiruntime.ParameterCodec // encodes the options of requests
	lease      lease
	requests   *prometheus.HistogramVec

	images      imageCache
	usage       usageCache
	watched     watchedNodes
	followers   followers
	starting    sync.Map // names of pods to the UIDs of those whose start was in progress when Inspect saw them last
	exits       sync.Map // names of pods to the exit of those that have ended, as Inspect saw them first
	credentials sync.Map // names of pods to the runtime.Auth that this process has stored for them last

	keeper keeper.Keeper
}

// New returns an Engine. It does not connect to the cluster, which may be unreachable.
func New(c Config, r prometheus.Registerer, log *slog.Logger) (*Engine, error) {
	for what, value := range map[string]string{"store id": c.StoreID, "namespace": c.Namespace, "claim": c.Claim,
		"directory of volumes": c.Volumes, "keeper": c.Keeper} {
		if value == "" {
			return nil, errors.New("kubernetes: no " + what)
		}
	}
	c.RequestsShare, c.TmpSize = cmp.Or(c.RequestsShare, 0.5), cmp.Or(c.TmpSize, 128<<20)
	e := &Engine{cfg: c, log: log, requests: newMetrics(r)}
	if err := e.connect(); err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return e, nil
}

// newMetrics registers the metric of calls with r, unless r is nil.
func newMetrics(r prometheus.Registerer) *prometheus.HistogramVec {
	requests := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "berth_engine_request_duration_seconds",
		Help:    "Time that requests to the container engine took, by operation and result.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
	}, []string{"operation", "result"})
	if r != nil {
		r.MustRegister(requests)
	}
	return requests
}

// Lacks returns what the engine cannot do. It refuses a spec that needs it.
func (e *Engine) Lacks() []runtime.Capability {
	return []runtime.Capability{
		runtime.CanSwap, runtime.CanPids, runtime.CanCpuset, runtime.CanIOWeight, runtime.CanNoOOMKill,
		runtime.CanPause, runtime.CanCountPids, runtime.CanDetectPorts, runtime.CanMountHost, runtime.CanNameUsers,
		runtime.CanHoldImages, runtime.CanAnyEnv,
	}
}

// Instance returns an id of the cluster, which does not change: a restart of the cluster's
// programs ends no container.
func (e *Engine) Instance(ctx context.Context) (id string, err error) {
	err = e.do(ctx, quick, "instance", e.cfg.Namespace, func(ctx context.Context) error {
		id, err = e.namespaceUID(ctx)
		return err
	})
	return id, err
}

// Ready returns nil if the cluster answers, else why not.
func (e *Engine) Ready(ctx context.Context) error {
	_, err := e.Instance(ctx)
	return err
}

// Info asks a cluster about itself, what berth may not do there, and which pods in its namespace are of other stores.
// It needs no Engine, whose store may be closed, and of c only Kubeconfig, Namespace, Balancer, OwnClaims, KubeletCA and
// StoreID, which may be empty: then no pod is of another store.
func Info(ctx context.Context, c Config) (info runtime.EngineInfo, err error) {
	c.Holder = "" // it acts on nothing
	one := &Engine{cfg: c, requests: newMetrics(nil), log: slog.New(slog.DiscardHandler)}
	if err := one.connect(); err != nil {
		return info, fmt.Errorf("kubernetes: %w", err)
	}
	defer one.api().Client.CloseIdleConnections()
	if info, err = one.Info(ctx); err == nil {
		info.Denied, err = one.denied(ctx)
	}
	if err == nil && c.StoreID != "" {
		info.Foreign, err = one.foreignPods(ctx)
	}
	return info, err
}

// maxForeign is how many pods of other stores are named.
const maxForeign = 10

// foreignPods returns the names of pods of other stores in the namespace.
func (e *Engine) foreignPods(ctx context.Context) (names []string, err error) {
	err = e.do(ctx, listed, "list", "pods of other stores", func(ctx context.Context) error {
		options := &meta.ListOptions{LabelSelector: labelStore + "," + labelStore + "!=" + hash(e.cfg.StoreID), Limit: maxForeign}
		var list core1.PodList
		err := e.api().Get().Namespace(e.cfg.Namespace).Resource("pods").VersionedParams(options, e.parameters).Do(ctx).Into(&list)
		for _, pod := range list.Items {
			names = append(names, pod.Name)
		}
		return err
	})
	return names, err
}

// Info asks the cluster about itself, and sums up the nodes that take pods.
func (e *Engine) Info(ctx context.Context) (info runtime.EngineInfo, err error) {
	nodes, _, err := e.nodes(ctx)
	if err != nil {
		return info, err
	}
	err = e.do(ctx, quick, "info", "cluster", func(ctx context.Context) error {
		answer, err := e.api().Get().AbsPath("/version").DoRaw(ctx)
		if err != nil {
			return err
		}
		var version struct{ GitVersion string }
		if err := json.Unmarshal(answer, &version); err != nil {
			return err
		}
		info = runtime.EngineInfo{
			Version: strings.TrimPrefix(version.GitVersion, "v"), API: "v1",
			Limits: runtime.EngineLimits{Memory: true, CPU: true},
		}
		sample := "" // the others have their certificates from the same place
		for _, node := range nodes {
			m := machineOf(&node)
			info.Machines = append(info.Machines, m)
			if m.Closed {
				continue
			}
			if sample == "" && reachOf(&node) == nodeReady {
				sample = node.Name
			}
			info.OS, info.Kernel = node.Status.NodeInfo.OSImage, node.Status.NodeInfo.KernelVersion
			info.CPUs += m.CPUs
			info.Memory += m.Memory
		}
		info.StatsError = e.statsError(ctx, sample)
		return nil
	})
	return info, err
}

// Close lets another berth act on the store's pods, and closes the idle connections to the cluster.
func (e *Engine) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	e.releaseLease(ctx)
	e.api().Client.CloseIdleConnections()
	return nil
}

// InClusterNamespace returns the namespace of the pod that berth runs in; empty if berth does
// not run in one.
func InClusterNamespace() string {
	name, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}
