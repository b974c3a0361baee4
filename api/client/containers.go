package client

import (
	"context"
	"io"
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
func (s Containers) List(ctx context.Context, labels ...string) ([]v1.ContainerSummary, error) {
	return list[[]v1.ContainerSummary](ctx, s.c, "/containers"+labelQuery(labels), "containers")
}

// ListMeasured returns all containers with their current resource usage.
func (s Containers) ListMeasured(ctx context.Context) ([]v1.MeasuredContainer, error) {
	return list[[]v1.MeasuredContainer](ctx, s.c, "/containers?stats=true", "containers")
}

// Get returns a container.
func (s Containers) Get(ctx context.Context, id string) (c v1.ContainerView, err error) {
	err = s.c.get(ctx, containerPath(id), &c)
	return c, err
}

// Spec returns the stored specification of a container, as Apply takes it, without the installation script.
func (s Containers) Spec(ctx context.Context, id string) (spec v1.ContainerSpec, err error) {
	err = s.c.get(ctx, containerPath(id)+"/spec", &spec)
	return spec, err
}

// Create creates a container. InternalID, Image and VolumeID of spec are required, and a field
// that is empty has its default. Create returns when the image is known to exist or after
// reconcile.create_wait, while the installation goes on.
func (s Containers) Create(ctx context.Context, spec v1.ContainerSpec) error {
	return s.c.Call(ctx, http.MethodPost, "/containers", spec, nil)
}

// ApplyOptions are options of Apply.
type ApplyOptions struct {
	// IfMatch, if not empty, makes Apply fail with status 412 unless it is the
	// container's ResourceVersion.
	IfMatch string

	// NextStart has a running container keep running: what can change in place does, and
	// the rest waits for its next start.
	NextStart bool
}

// Apply creates the container of spec.InternalID, or changes it to match spec.
// Applying a spec again changes nothing.
func (s Containers) Apply(ctx context.Context, spec v1.ContainerSpec, o ApplyOptions) (c v1.ContainerView, err error) {
	when := ""
	if o.NextStart {
		when = "next-start"
	}
	request, err := s.c.request(ctx, http.MethodPut, containerPath(spec.InternalID)+query("apply", when), spec)
	if err != nil {
		return c, err
	}
	setIf(request.Header, "If-Match", o.IfMatch)
	err = s.c.send(request, &c)
	return c, err
}

// DryRun returns what Apply would do, and changes nothing.
func (s Containers) DryRun(ctx context.Context, spec v1.ContainerSpec) (changes v1.Changes, err error) {
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

// Reinstall stops a container and installs it again in its volume. A nil field of o keeps the
// current value.
func (s Containers) Reinstall(ctx context.Context, id string, o v1.ReinstallRequest) error {
	_, err := s.accepted(ctx, http.MethodPost, containerPath(id)+"/reinstall", o)
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
	Tail    int       // the number of lines, 0 to 10000
	Since   time.Time // only later lines; zero: all
	Before  time.Time // only earlier lines; zero: all
	Install bool      // only the console of the installation

	// SinceLine, if not empty, is the Line of v1.Logs or of a Message. Then the result is
	// the first Tail lines behind it, instead of the last ones; Since and Before must
	// be zero.
	SinceLine string
}

// Logs returns the lines that o selects. To page backward, set Before to the time of
// the first line of the page before; to read on, set SinceLine to the Line of the
// page before.
func (s Containers) Logs(ctx context.Context, id string, o LogOptions) (logs v1.Logs, err error) {
	name := "logs"
	if o.Install {
		name = "install-logs"
	}
	parameters := query("tail", strconv.Itoa(o.Tail), "since", timeText(o.Since), "before", timeText(o.Before), "since_line", o.SinceLine)
	err = s.c.get(ctx, containerPath(id)+"/"+name+parameters, &logs)
	return logs, err
}

// timeText returns a time as a parameter, and nothing for the zero time.
func timeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// LogContent writes the whole console that the daemon has kept, as it was printed.
func (s Containers) LogContent(ctx context.Context, id string, to io.Writer) error {
	content, err := Files(s).download(ctx, containerPath(id)+"/logs/content")
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(to, content)
	return err
}

// Stats returns the current resource usage of a running container.
func (s Containers) Stats(ctx context.Context, id string) (stats v1.Stats, err error) {
	err = s.c.get(ctx, containerPath(id)+"/stats", &stats)
	return stats, err
}
