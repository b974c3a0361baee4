package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
	"berth/controller/console"
	"berth/controller/container"
	"berth/controller/image"
	"berth/controller/stats"
	"berth/runtime"
	"berth/runtime/cgroup"
	"berth/runtime/docker"
	"berth/runtime/kubernetes"
	"berth/store"
)

// engine is what the daemon needs of a container engine; see runtime/engine.go.
type engine interface {
	container.Engine
	console.Engine
	image.Engine
	stats.Meter
	List(ctx context.Context) ([]runtime.Found, error)
	Lacks() []runtime.Capability
	Info(ctx context.Context) (runtime.EngineInfo, error)
	Ready(ctx context.Context) error
	Close() error
}

// newEngine makes the engine, and the parts that only Docker has: its containers are processes
// of this host.
func (d *daemon) newEngine() error {
	c := d.settings.Current()
	if err := errors.Join(keepEngine(d.store, c.Engine), requireClaims(d.store.Read(), c.Kubernetes.Claims)); err != nil {
		return err
	}
	if c.Engine == v1.EngineKubernetes {
		one, err := newKubernetes(d, c)
		if err == nil {
			d.engine, d.meter, d.machines, d.claims = one, one, one.Machines, one
			d.part("events of the cluster", func(ctx context.Context) error { return d.reportChanges(ctx, one.Report) })
		}
		return err
	}
	egress := newEgressFilter(c, d.store.ID(), d.log)
	guard := egress.guard // it guards each bridge before its first container
	if !egress.on {
		guard = nil
	}
	keeper, err := config.Keeper("")
	if err != nil { // those that exist need none
		d.log.Error("no container can be created", "err", err)
	}
	one, err := docker.New(docker.Config{Guard: guard, Host: c.Docker.Host, StoreID: d.store.ID(), Network: c.Docker.Network,
		MTU:       c.Docker.MTU,
		PidsLimit: c.Docker.PidsLimit, NofileLimit: c.Docker.NofileLimit, TmpSize: int64(c.Docker.TmpSize),
		LogMaxSize: int64(c.Docker.LogMaxSize), LogMaxFiles: c.Docker.LogMaxFiles,
		Keeper: keeper, Volumes: c.Storage.VolumesPath}, d.metrics, d.log)
	if err != nil {
		return err
	}
	d.part("egress filter", func(ctx context.Context) error { return egress.keep(ctx, one.Bridge, d.resync()) })
	meter := cgroup.New(one)
	d.engine, d.meter, d.roots = one, meter, d.newRoots(one, meter)
	return nil
}

func newKubernetes(d *daemon, c v1.Config) (*kubernetes.Engine, error) {
	k := kubernetesConfig(c)
	k.StoreID, k.Holder = d.store.ID(), holder(c)
	k.RootLimit = func() int64 { return int64(d.settings.Current().Docker.RootLimit) }
	k.Auth = func(host string) runtime.Auth {
		for name := range d.settings.Current().Docker.Registries {
			if v1.CanonicalRegistry(name) == host {
				return d.registryAuth(name)
			}
		}
		return runtime.Auth{}
	}
	if k.Namespace == "" {
		return nil, errors.New("berth does not run in a pod: set kubernetes.namespace and kubernetes.kubeconfig")
	}
	var err error
	if k.Keeper, err = config.Keeper(k.Keeper); err != nil {
		return nil, fmt.Errorf("%w, or set kubernetes.keeper", err)
	}
	return kubernetes.New(k, d.metrics, d.log)
}

// holder names this berth among those that have copies of its store: where its store lies. It is the same after
// a restart.
func holder(c v1.Config) string {
	host, _ := os.Hostname() // of a pod, its name
	path, _ := filepath.Abs(c.Storage.DataPath)
	where := "berth on " + host + " with the store in " + path
	if namespace := kubernetes.InClusterNamespace(); namespace != "" {
		where += ", namespace " + namespace
	}
	return where
}

// kubernetesConfig returns the configuration of the engine kubernetes.
func kubernetesConfig(c v1.Config) kubernetes.Config {
	k := c.Kubernetes
	if k.Namespace == "" {
		k.Namespace = kubernetes.InClusterNamespace()
	}
	one := kubernetes.Config{Kubeconfig: k.Kubeconfig, Namespace: k.Namespace, Claim: k.Claim, Volumes: c.Storage.VolumesPath,
		Claims: map[string]string{}, OwnClaims: k.VolumeClass != "", Keeper: k.Keeper,
		PlainHTTP: k.PlainRegistries, KubeletCA: k.KubeletCA, TmpSize: int64(c.Docker.TmpSize), RequestsShare: float64(k.RequestsPercent) / 100}
	for name, claim := range k.Claims {
		one.Claims[c.VolumesIn(name)] = claim.Claim
	}
	if k.Ports == v1.PortsService {
		one.Balancer = &kubernetes.Balancer{Class: k.LoadBalancerClass, Annotations: map[string]string{}}
		for _, text := range k.ServiceAnnotations {
			key, value, _ := strings.Cut(text, "=")
			one.Balancer.Annotations[key] = value
		}
	}
	return one
}

// keepEngine stores the name of the engine. It refuses another engine than the stored one
// while there are containers: it could not find them.
func keepEngine(s *store.Store, name string) error {
	return s.Update(func(tx *store.Tx) error {
		before, err := store.Engine(tx)
		if before = cmp.Or(before, v1.EngineDocker); err != nil || before == name {
			return err
		}
		if stored := store.Containers.List(tx); len(stored) > 0 {
			return fmt.Errorf("the store has %d containers of the engine %s: set engine to %s, and delete them before you change it",
				len(stored), before, before)
		}
		return store.SetEngine(tx, name)
	})
}

// requireClaims returns an error if there are volumes whose claim the configuration does not name any more.
func requireClaims(tx *store.Tx, claims map[string]v1.VolumeClaim) error {
	for _, v := range store.Volumes.List(tx) {
		if _, known := claims[v.Spec.Storage]; v.Spec.Storage != "" && !known {
			return fmt.Errorf("volume %s has the storage %s: kubernetes.claims must have it until such volumes are deleted", v.Meta.ID,
				v.Spec.Storage)
		}
	}
	return nil
}

// lacks returns the names of what the engine cannot do.
func (d *daemon) lacks() []string {
	names := []string{}
	for _, c := range d.engine.Lacks() {
		names = append(names, string(c))
	}
	return names
}
