package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	cerrdefs "github.com/containerd/errdefs"
	dockernetwork "github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"berth/runtime"
)

// connection holds Docker's client, which negotiates the API version once. An engine of
// another version that replaces the engine ends the stream of events, so Watch renews the
// client each time that it connects.
type connection struct {
	options []client.Opt
	current atomic.Pointer[client.Client]
}

func newConnection(host string) (*connection, error) {
	c := &connection{options: []client.Opt{client.FromEnv, client.WithAPIVersionNegotiation()}}
	if host != "" {
		c.options = append(c.options, client.WithHost(host))
	}
	return c, c.renew()
}

// renew replaces the client. Open streams of the old client continue.
func (c *connection) renew() error {
	cli, err := client.NewClientWithOpts(c.options...)
	if err != nil {
		return fmt.Errorf("docker: %w", err)
	}
	if old := c.current.Swap(cli); old != nil {
		return old.Close()
	}
	return nil
}

func (c *connection) client() *client.Client { return c.current.Load() }

// agree negotiates the API version, unless the client has done so. Otherwise the
// client would ignore a failed negotiation, and an older engine would refuse
// valid requests.
func agree(ctx context.Context, cli *client.Client) error {
	return cli.NewVersionError(ctx, "1.25", "berth")
}

// defaultNetwork is a network that dockerd recreates, with another id, at each
// start unless a container kept running.
const defaultNetwork = "bridge"

// Instance returns the id of the engine's default network, which identifies the
// engine's process. It is empty if the engine has no such network or hides it.
//
// Instance opens a new connection. dockerd closes its listeners before it stops
// the first container, but Docker 20.10 answers over open connections until all
// containers have stopped.
func (e *Engine) Instance(ctx context.Context) (id string, err error) {
	err = e.calls.do(ctx, opInstance, "engine", func(ctx context.Context) error {
		id, err = e.instance(ctx)
		return err
	})
	return id, err
}

func (e *Engine) instance(ctx context.Context) (string, error) {
	once := &http.Client{CheckRedirect: client.CheckRedirect, Transport: &http.Transport{DisableKeepAlives: true}}
	// Without a host of its own, an HTTP client of ours would not dial the usual socket.
	own := []client.Opt{client.WithHTTPClient(once), client.WithHost(client.DefaultDockerHost)}
	cli, err := client.NewClientWithOpts(append(own, e.conn.options...)...)
	if err != nil {
		return "", err
	}
	defer cli.Close()
	n, err := cli.NetworkInspect(ctx, defaultNetwork, dockernetwork.InspectOptions{})
	switch {
	case errors.Is(classify(err), errNoNetwork), cerrdefs.IsPermissionDenied(err):
		return "", nil
	case err == nil && n.ID == "":
		return "", fmt.Errorf("%w: its answer has no network id", runtime.ErrUnavailable)
	}
	return n.ID, err
}

// Info asks the engine about itself.
func (e *Engine) Info(ctx context.Context) (runtime.EngineInfo, error) { return Info(ctx, e.cfg.Host) }

// Info asks the engine at host, which is that of Config, about itself. It needs no
// Engine, whose store may be closed.
func Info(ctx context.Context, host string) (info runtime.EngineInfo, err error) {
	conn, err := newConnection(host)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, conn.client().Close()) }()
	if err := agree(ctx, conn.client()); err != nil {
		return info, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	version, err := conn.client().ServerVersion(ctx)
	if err != nil {
		return info, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	i, err := conn.client().Info(ctx)
	if err != nil {
		return info, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	return runtime.EngineInfo{
		Version: version.Version, API: version.APIVersion, Kernel: i.KernelVersion, OS: i.OperatingSystem,
		StorageDriver: i.Driver, CgroupVersion: i.CgroupVersion, LiveRestore: i.LiveRestoreEnabled, CPUs: i.NCPU,
		Root: i.DockerRootDir, MapsUsers: mapsUsers(i), Firewall: firewallOf(i),
		Limits: runtime.EngineLimits{Memory: i.MemoryLimit, Swap: i.SwapLimit, CPU: i.CPUCfsQuota, Pids: i.PidsLimit},
	}, nil
}

// hostFacts are what the configuration of a container depends on beside its spec.
type hostFacts struct {
	profile string
	cpus    int
}

// config returns the configuration of the engine together with the facts about its host,
// which it asks for once after each connect of Watch.
func (e *Engine) config(ctx context.Context) (Config, error) {
	facts := e.host.Load()
	if facts == nil {
		seen, err := e.askHost(ctx)
		if err != nil {
			return Config{}, err
		}
		facts = &seen
		e.host.Store(facts)
	}
	c := e.cfg
	c.profile, c.cpus = facts.profile, facts.cpus
	return c, nil
}

// mapsUsers reports whether the engine maps the users of containers to others of its host.
func mapsUsers(i system.Info) bool { return slices.Contains(i.SecurityOptions, "name=userns") }

// firewallOf returns how the engine publishes ports. Before Docker 28 there was only iptables.
func firewallOf(i system.Info) string {
	if i.FirewallBackend != nil {
		return i.FirewallBackend.Driver
	}
	return "iptables"
}

// errUsers is the reason why no container is created while the engine maps their users to others of the host:
// none could read or write its volume.
var errUsers = errors.New("the engine maps the users of containers to others (userns-remap), who cannot use the volumes: " +
	"remove userns-remap from the engine's configuration, and restart it")

// askHost asks the engine for the facts. It gets a profile, unless the operator gave it another one
// than the default, or none.
func (e *Engine) askHost(ctx context.Context) (facts hostFacts, err error) {
	var options []string
	err = e.calls.do(ctx, opInfo, "engine", func(ctx context.Context) error {
		i, err := e.conn.client().Info(ctx)
		facts.cpus, options = i.NCPU, i.SecurityOptions
		if mapsUsers(i) {
			return classifiedError{runtime.ErrHost, errUsers}
		}
		return err
	})
	isDefault := slices.Contains(options, "name=seccomp,profile=default") || slices.Contains(options, "name=seccomp,profile=builtin")
	if err != nil || !isDefault {
		return facts, err
	}
	profile, err := json.Marshal(profile())
	if err != nil {
		return facts, fmt.Errorf("seccomp profile: %w", err)
	}
	facts.profile = string(profile)
	return facts, nil
}
