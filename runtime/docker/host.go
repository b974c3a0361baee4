package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/versions"
	"github.com/moby/profiles/seccomp"
)

// hostFacts are what the configuration of a container depends on beside its spec.
type hostFacts struct {
	profile string
	cpus    int
}

// apiWithoutIOUring is the API version of Docker 25, whose default seccomp profile forbids
// io_uring. A program can keep deleted files in an io_uring, where no measurement of disk
// usage finds them.
const apiWithoutIOUring = "1.44"

// config returns the configuration of the engine together with the facts about its host,
// which it asks for once after each connect of Watch.
func (e *core) config(ctx context.Context) (Config, error) {
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

// askHost asks the engine for the facts. An engine that is older than Docker 25 gets the
// current default profile, unless the operator gave it another one, or none.
func (e *core) askHost(ctx context.Context) (facts hostFacts, err error) {
	var options []string
	err = e.calls.do(ctx, opInfo, "engine", func(ctx context.Context) error {
		i, err := e.conn.client().Info(ctx)
		facts.cpus, options = i.NCPU, i.SecurityOptions
		return err
	})
	isDefault := slices.Contains(options, "name=seccomp,profile=default") || slices.Contains(options, "name=seccomp,profile=builtin")
	if err != nil || !isDefault || !versions.LessThan(e.conn.client().ClientVersion(), apiWithoutIOUring) {
		return facts, err
	}
	profile, err := json.Marshal(seccomp.DefaultProfile())
	if err != nil {
		return facts, fmt.Errorf("seccomp profile: %w", err)
	}
	facts.profile = string(profile)
	return facts, nil
}
