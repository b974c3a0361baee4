package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	v1 "berth/api/v1"
)

// Containers are the calls for containers. All changes are stored before the call
// returns and carried out afterwards.
type Containers struct{ c *Client }

func containerPath(id string) string { return "/containers/" + url.PathEscape(id) }

// List returns the containers that have every one of these labels, each given as
// "name=value" or "name".
func (s Containers) List(ctx context.Context, labels ...string) ([]Summary, error) {
	var body struct {
		Containers []Summary `json:"containers"`
	}
	path := "/containers"
	if len(labels) > 0 {
		path += "?" + url.Values{"label": labels}.Encode()
	}
	err := s.c.get(ctx, path, &body)
	return body.Containers, err
}

// Get returns a container.
func (s Containers) Get(ctx context.Context, id string) (c Container, err error) {
	err = s.c.get(ctx, containerPath(id), &c)
	return c, err
}

// Create creates a container. It returns when the image is known to exist or after
// reconcile.create_wait, while the installation goes on.
func (s Containers) Create(ctx context.Context, spec ContainerSpec) error {
	return s.c.Call(ctx, http.MethodPost, "/containers", spec, nil)
}

// ApplyOptions are options of Apply.
type ApplyOptions struct {
	// IfMatch, if not empty, makes Apply fail with status 412 unless it is the
	// container's ResourceVersion.
	IfMatch string
}

// Apply creates the container of spec.InternalID, or changes it to match spec.
// Applying a spec again changes nothing.
func (s Containers) Apply(ctx context.Context, spec ContainerSpec, o ApplyOptions) (c Container, err error) {
	request, err := s.c.request(ctx, http.MethodPut, containerPath(spec.InternalID), spec)
	if err != nil {
		return c, err
	}
	if o.IfMatch != "" {
		request.Header.Set("If-Match", o.IfMatch)
	}
	err = s.c.send(request, &c)
	return c, err
}

// DryRun returns what Apply would do, and changes nothing.
func (s Containers) DryRun(ctx context.Context, spec ContainerSpec) (changes Changes, err error) {
	err = s.c.Call(ctx, http.MethodPut, containerPath(spec.InternalID)+"?dry_run=true", spec, &changes)
	return changes, err
}

// DeleteOptions are options of Delete.
type DeleteOptions struct {
	Volume bool // delete the volume too, with its files
}

// Delete deletes a container: it is killed and its ports are released. Get returns
// an error with status 404 once that is done.
func (s Containers) Delete(ctx context.Context, id string, o DeleteOptions) (message string, err error) {
	volume := ""
	if o.Volume {
		volume = "true"
	}
	return s.accepted(ctx, http.MethodDelete, containerPath(id)+query("volume", volume), nil)
}

// Action is a request to a container that needs nothing but its id.
type Action string

// The actions.
const (
	Start     Action = "start"
	Stop      Action = "stop"
	Kill      Action = "kill"
	Restart   Action = "restart"
	Reinstall Action = "reinstall" // with the current image and script
)

// Do requests an action, and returns the daemon's message. Repeating start, stop or
// kill changes nothing.
func (s Containers) Do(ctx context.Context, id string, a Action) (message string, err error) {
	return s.accepted(ctx, http.MethodPost, containerPath(id)+"/"+string(a), nil)
}

// ReinstallOptions replace parts of the spec before an installation. Empty fields
// keep the current value.
type ReinstallOptions struct {
	Image         string  `json:"image,omitempty"`
	InstallScript *string `json:"install_script,omitempty"`
}

// Reinstall stops a container and installs it again in its volume.
func (s Containers) Reinstall(ctx context.Context, id string, o ReinstallOptions) error {
	_, err := s.accepted(ctx, http.MethodPost, containerPath(id)+"/reinstall", o)
	return err
}

// Rebind replaces the ports of a container.
func (s Containers) Rebind(ctx context.Context, id string, ports []v1.Port) error {
	body := struct {
		Ports []v1.Port `json:"ports"`
	}{append([]v1.Port{}, ports...)}
	_, err := s.accepted(ctx, http.MethodPost, containerPath(id)+"/rebind-network", body)
	return err
}

// Send writes a line to the console of a running container.
func (s Containers) Send(ctx context.Context, id, command string) error {
	return s.c.Call(ctx, http.MethodPost, containerPath(id)+"/command", map[string]string{"command": command}, nil)
}

func (s Containers) accepted(ctx context.Context, method, path string, body any) (string, error) {
	var answer struct {
		Message string `json:"message"`
	}
	err := s.c.Call(ctx, method, path, body, &answer)
	return answer.Message, err
}

// LogOptions select lines of a console.
type LogOptions struct {
	Tail    int       // the number of lines from the end, 0 to 10000
	Since   time.Time // only lines from this time on; zero: all
	Install bool      // only the console of the installation
}

// Logs returns the last lines of a container's console.
func (s Containers) Logs(ctx context.Context, id string, o LogOptions) ([]Line, error) {
	name, since := "logs", ""
	if o.Install {
		name = "install-logs"
	}
	if !o.Since.IsZero() {
		since = o.Since.UTC().Format(time.RFC3339Nano)
	}
	var body struct {
		Lines []Line `json:"lines"`
	}
	err := s.c.get(ctx, fmt.Sprintf("%s/%s%s", containerPath(id), name, query("tail", strconv.Itoa(o.Tail), "since", since)), &body)
	return body.Lines, err
}

// Stats returns the current resource usage of a running container.
func (s Containers) Stats(ctx context.Context, id string) (stats v1.Stats, err error) {
	err = s.c.get(ctx, containerPath(id)+"/stats", &stats)
	return stats, err
}
