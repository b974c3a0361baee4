package importer

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"berth/api/client"
	"berth/api/egg"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/config"
	"berth/cmd/berth-wings/node"
	"berth/cmd/berth-wings/panel"
)

// Label is the label of a volume while its server is imported. Its value is whether the server ran.
const (
	Label   = "wings.import"
	ran     = "running"
	stopped = "stopped"
)

// The bounds of what berth does for one server.
const (
	pollPause = 100 * time.Millisecond
	readyTime = time.Minute // for a directory, a start, or a removal
)

// Options configure an Importer.
type Options struct {
	Config config.Config
	Berth  *client.Client // with a token of the scope admin
	Panel  *panel.Client
	Node   *node.Node    // creates the containers
	Stop   time.Duration // how long a server may take to stop; then it is killed

	Step func(name string) // is called before each change; nil: nothing is
}

// Importer moves the servers of one node.
type Importer struct {
	o      Options
	engine *engine
}

// New returns an Importer. Docker is that of the environment, as for the docker command.
func New(o Options) (*Importer, error) {
	if o.Step == nil {
		o.Step = func(string) {}
	}
	e, err := newEngine()
	return &Importer{o, e}, err
}

// Close closes the connections to Docker.
func (i *Importer) Close() error { return i.engine.docker.Close() }

// folder returns where wings has the files of a server.
func (i *Importer) folder(uuid string) string { return filepath.Join(i.o.Config.System.Data, uuid) }

// volume returns the volume of a server, or nil.
func (i *Importer) volume(ctx context.Context, uuid string) (*v1.VolumeView, error) {
	list, err := i.o.Berth.Volumes().List(ctx, egg.ServerLabel+"="+uuid)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if len(list) > 1 {
		return nil, fmt.Errorf("berth has %d volumes with the label %s=%s: delete all but that of the server", len(list), egg.ServerLabel, uuid)
	}
	return &list[0], nil
}

// await calls done until it returns true or an error.
func await(ctx context.Context, limit time.Duration, what string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		is, err := done(ctx)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case err != nil || is:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollPause):
		}
	}
}
