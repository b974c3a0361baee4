package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"berth/api/client"
	"berth/api/egg"
	v1 "berth/api/v1"
)

// Host returns what this node adds to the servers of its panel, as far as it is known before berth has answered.
func (n *Node) Host() egg.Host {
	c := n.config()
	h := egg.Host{User: fmt.Sprintf("%d:%d", c.System.User.UID, c.System.User.GID), Timezone: c.System.Timezone,
		Pids: c.Docker.PidLimit, CPUs: n.host.Load().CPUs, RestartMode: v1.RestartNever, AllowedMounts: c.AllowedMounts}
	switch {
	case c.System.CrashDetection.Enabled && c.System.CrashDetection.CleanExit:
		h.RestartMode = v1.RestartAlways
	case c.System.CrashDetection.Enabled:
		h.RestartMode = v1.RestartOnFailure
	}
	if o := c.Docker.Overhead; o.Override {
		h.Addition = func(mib float64) float64 {
			factor, least := max(1, o.DefaultMultiplier), math.MaxFloat64
			for text, f := range o.Multipliers {
				if upTo, err := strconv.ParseFloat(text, 64); err == nil && mib <= upTo && upTo < least {
					factor, least = max(1, f), upTo
				}
			}
			return factor
		}
	}
	return h
}

// apply makes the container of a server what the panel describes. While it runs, what can change in
// place does so at once, and the rest waits for the next start. script, if not nil, is what installs
// it; power, if not empty, is whether it shall run.
func (n *Node) apply(ctx context.Context, s *server, script *egg.Script, power v1.Power) error {
	object := s.get()
	spec, notes := object.Spec(n.Host(), script)
	volume, err := n.volumeOf(ctx, s)
	if err != nil {
		return err
	}
	spec.VolumeID, spec.Power = volume, power
	spec.Mounts = slices.DeleteFunc(spec.Mounts, func(m v1.Mount) bool {
		_, err := os.Stat(m.Source)
		return err != nil // as nodes of the panels do
	})
	old, err := n.o.Berth.Containers().Spec(ctx, s.uuid)
	if err != nil && !errors.Is(err, v1.ErrContainerNotFound) {
		return err
	}
	if script == nil {
		spec.InstallImage, spec.InstallMount = old.InstallImage, old.InstallMount
		spec.InstallEntrypoint, spec.InstallUser = old.InstallEntrypoint, old.InstallUser
	}
	if err := n.addPorts(ctx, spec.Ports, old.Ports); err != nil {
		return err
	}
	for _, note := range notes {
		n.o.Log.Debug("a server is not quite what the panel sent", "server", s.uuid, "note", note)
	}
	if _, err := n.o.Berth.Containers().Apply(ctx, spec, client.ApplyOptions{NextStart: true}); err != nil {
		return err
	}
	return n.removePorts(ctx, old.Ports, spec.Ports)
}

// known returns a context for a change of berth's that the caller must know the result of. It goes on for a while after ctx:
// berth may carry out a request whose client has left, after the next one.
func known(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), callTime)
}

// volumeOf returns the volume of a server. It creates one if there is none with the server's label.
func (n *Node) volumeOf(ctx context.Context, s *server) (string, error) {
	s.making.Lock()
	defer s.making.Unlock()
	s.mu.Lock()
	volume := s.volume
	s.mu.Unlock()
	if volume != "" {
		return volume, nil
	}
	if err := n.notImported(s.uuid); err != nil {
		return "", err
	}
	list, err := n.o.Berth.Volumes().List(ctx, egg.ServerLabel+"="+s.uuid)
	if err != nil {
		return "", err
	}
	if len(list) > 0 {
		volume = list[0].VolumeID
	} else {
		ctx, cancel := known(ctx)
		defer cancel()
		made, err := n.o.Berth.Volumes().Create(ctx, v1.VolumeSpec{Labels: map[string]string{egg.ServerLabel: s.uuid}})
		if err != nil {
			return "", err
		}
		volume = made.VolumeID
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.volume = volume
	return volume, nil
}

// addPorts adds the ports to the pool that a container has not claimed yet.
func (n *Node) addPorts(ctx context.Context, ports, claimed []v1.Port) error {
	for _, p := range ports {
		if slices.ContainsFunc(claimed, func(old v1.Port) bool { return refOf(old) == refOf(p) }) {
			continue
		}
		if err := n.o.Berth.Ports().Add(ctx, refOf(p)); err != nil && !errors.Is(err, v1.ErrPortExists) {
			return err
		}
	}
	return nil
}

// removePorts removes the ports from the pool that a container had and has no more, unless they are
// claimed still.
func (n *Node) removePorts(ctx context.Context, had, has []v1.Port) error {
	var gone []v1.PortRef
	for _, p := range had {
		if !slices.ContainsFunc(has, func(now v1.Port) bool { return refOf(now) == refOf(p) }) {
			gone = append(gone, refOf(p))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	_, err := n.o.Berth.Ports().DeleteAll(ctx, gone)
	return err
}

func refOf(p v1.Port) v1.PortRef { return v1.PortRef{IP: p.IP, Port: p.Port, Protocol: p.Protocol} }

// The life of a tenant's token. It is replaced well before its end, so that nothing is cut off.
const (
	tenantLife = 48 * time.Hour
	tenantUse  = 24 * time.Hour
)

// tenant is a server with a client of berth that can access this server alone. The egg's denied files are
// denied to it.
type tenant struct {
	*client.Client
	n      *Node
	s      *server
	volume string
}

// tenant returns the tenant of a server.
func (n *Node) tenant(ctx context.Context, s *server) (t tenant, err error) {
	t = tenant{n: n, s: s}
	if t.volume, err = n.volumeOf(ctx, s); err != nil {
		return t, err
	}
	s.mu.Lock()
	own, until := s.own, s.ownUntil
	s.mu.Unlock()
	if t.Client = own; own != nil && time.Now().Before(until) {
		return t, nil
	}
	life := tenantLife.String()
	token, err := n.o.Berth.Tokens().Create(ctx, v1.TokenRequest{Name: "berth-wings", TTL: &life,
		Containers: []string{s.uuid}, Scopes: v1.TenantScopes()})
	if err != nil {
		return t, err
	}
	t.Client = n.o.Berth.WithToken(v1.Secret(token.Token))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own, s.ownUntil = t.Client, time.Now().Add(tenantUse)
	return t, nil
}

// as returns the handler of a request that is carried out as the tenant of its server.
func (n *Node) as(handle func(tenant, *call) error) func(*call) error {
	return func(c *call) error {
		t, err := n.tenant(c.Context(), c.server)
		if err != nil {
			return err
		}
		return handle(t, c)
	}
}
