package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"berth/runtime"
)

// Config configures an Engine.
type Config struct {
	Kubeconfig string   // path; empty: the credentials of the pod that berth runs in
	Namespace  string   // of the pods
	StoreID    string   // id of the store that owns the containers
	Claim      string   // name of the claim with the volumes, in Namespace
	Volumes    string   // directory at which berth has mounted Claim
	Keeper     string   // path of the program cmd/keeper
	PlainHTTP  []string // registries that are asked without TLS, as host:port

	// RequestsShare is the part of a memory or processor limit that the scheduler reserves
	// for a pod. 0: 0.5.
	RequestsShare float64
}

// Engine drives the containers of one store. It is safe for concurrent use.
type Engine struct{ core *core }

// core holds the state of an Engine.
type core struct {
	cfg    Config
	rest   *rest.Config
	client *rest.RESTClient
	log    *slog.Logger

	parameters apiruntime.ParameterCodec // encodes the options of requests

	images imageCache
	usage  usageCache

	keeperLock   sync.Mutex // held while the keeper is copied
	keeperFolder string     // of the claim; empty: it was not copied yet
}

// New returns an Engine. It does not connect to the cluster, which may be unreachable.
func New(c Config, log *slog.Logger) (*Engine, error) {
	for what, value := range map[string]string{"store id": c.StoreID, "namespace": c.Namespace, "claim": c.Claim, "directory of volumes": c.Volumes, "keeper": c.Keeper} {
		if value == "" {
			return nil, errors.New("kubernetes: no " + what)
		}
	}
	if c.RequestsShare == 0 {
		c.RequestsShare = 0.5
	}
	e := &Engine{core: &core{cfg: c, log: log}}
	if err := e.core.connect(c.Kubeconfig); err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return e, nil
}

// Lacks returns what the engine cannot do. It refuses a spec that needs it.
func (e *Engine) Lacks() []runtime.Capability {
	return []runtime.Capability{
		runtime.CanSwap, runtime.CanPids, runtime.CanCpuset, runtime.CanIOWeight, runtime.CanNoOOMKill,
		runtime.CanPause, runtime.CanCountPids, runtime.CanDetectPorts,
	}
}

// Instance returns an id of the cluster, which does not change: a restart of the cluster's
// programs ends no container.
func (e *Engine) Instance(ctx context.Context) (id string, err error) {
	err = e.core.do(ctx, quick, "instance", e.core.cfg.Namespace, func(ctx context.Context) error {
		id, err = e.core.namespaceUID(ctx)
		return err
	})
	return id, err
}
