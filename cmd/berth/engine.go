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
	if err := keepEngine(d.store, c.Engine); err != nil {
		return err
	}
	if c.Engine == v1.EngineKubernetes {
		one, err := newKubernetes(d, c)
		if err == nil {
			d.engine, d.meter = one, one
		}
		return err
	}
	egress := newEgressFilter(c, d.store.ID(), d.log)
	guard := egress.guard // it guards each bridge before its first container
	if !egress.on {
		guard = nil
	}
	one, err := docker.New(docker.Config{Guard: guard, Host: c.Docker.Host, StoreID: d.store.ID(), Network: c.Docker.Network,
		PidsLimit: c.Docker.PidsLimit, NofileLimit: c.Docker.NofileLimit, TmpSize: int64(c.Docker.TmpSize),
		LogMaxSize: int64(c.Docker.LogMaxSize), LogMaxFiles: c.Docker.LogMaxFiles}, d.metrics, d.log)
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
	k.StoreID = d.store.ID()
	k.RootLimit = func() int64 { return int64(d.settings.Current().Docker.RootLimit) }
	if k.Namespace == "" {
		return nil, errors.New("berth does not run in a pod: set kubernetes.namespace and kubernetes.kubeconfig")
	}
	if k.Keeper == "" {
		own, err := os.Executable()
		if err != nil {
			return nil, err
		}
		k.Keeper = filepath.Join(filepath.Dir(own), "berth-keeper")
	}
	if _, err := os.Stat(k.Keeper); err != nil {
		return nil, fmt.Errorf("%w: install berth-keeper beside berth, or set kubernetes.keeper", err)
	}
	return kubernetes.New(k, d.metrics, d.log)
}

// kubernetesConfig returns the configuration of the engine kubernetes.
func kubernetesConfig(c v1.Config) kubernetes.Config {
	k := c.Kubernetes
	if k.Namespace == "" {
		k.Namespace = kubernetes.InClusterNamespace()
	}
	one := kubernetes.Config{Kubeconfig: k.Kubeconfig, Namespace: k.Namespace, Claim: k.Claim, Volumes: c.Storage.VolumesPath, Keeper: k.Keeper,
		PlainHTTP: k.PlainRegistries, KubeletCA: k.KubeletCA, TmpSize: int64(c.Docker.TmpSize), RequestsShare: float64(k.RequestsPercent) / 100}
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
			return fmt.Errorf("the store has %d containers of the engine %s: set engine to %s, and delete them before you change it", len(stored), before, before)
		}
		return store.SetEngine(tx, name)
	})
}

// lacks returns the names of what the engine cannot do.
func (d *daemon) lacks() []string {
	names := []string{}
	for _, c := range d.engine.Lacks() {
		names = append(names, string(c))
	}
	return names
}
