package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"

	v1 "berth/api/v1"
)

// state is a container as the daemon tells it, as far as text shows it.
type state struct {
	InternalID   string           `json:"internal_id"`
	ContainerID  string           `json:"container_id"`
	State        string           `json:"state"`
	Power        string           `json:"power"`
	InstallState string           `json:"install_state"`
	Image        string           `json:"image"`
	VolumeID     string           `json:"volume_id"`
	Command      string           `json:"startup_command"`
	Ports        []v1.Port        `json:"ports"`
	Limits       v1.Limits        `json:"limits"`
	Policy       v1.RestartPolicy `json:"restart_policy"`
	Generation   uint64           `json:"generation"`
	Observed     uint64           `json:"observed_generation"`
	ExitCode     *int             `json:"exit_code"`
	OOMKilled    bool             `json:"oom_killed"`
	Restarts     int              `json:"restart_count"`
	NextRetryAt  *time.Time       `json:"next_retry_at"`
	StartedAt    *time.Time       `json:"started_at"`
	Message      string           `json:"message"`
	CreatedAt    int64            `json:"created_at"`
	Conditions   []v1.Condition   `json:"conditions"`
}

// up is how long the container has been running.
func (s state) up(now time.Time) string {
	if s.StartedAt == nil || s.State == string(v1.Exit) || s.State == string(v1.Ready) {
		return ""
	}
	return age(*s.StartedAt, now)
}

// ports are the published ones, as "25565/tcp" or "127.0.0.1:25565/tcp".
func (s state) ports() string {
	list := make([]string, len(s.Ports))
	for i, p := range s.Ports {
		list[i] = portText(p)
	}
	return strings.Join(list, ",")
}

func portText(p v1.Port) string {
	text := strconv.Itoa(p.Port) + "/" + p.Protocol
	switch {
	case p.IP == "0.0.0.0":
	case strings.Contains(p.IP, ":"):
		text = "[" + p.IP + "]:" + text
	default:
		text = p.IP + ":" + text
	}
	if p.ContainerPort != 0 && p.ContainerPort != p.Port {
		text += "->" + strconv.Itoa(p.ContainerPort)
	}
	return text
}

// remark is what an operator should know beside the state.
func (s state) remark(now time.Time) string {
	var parts []string
	if s.ExitCode != nil && s.State != string(v1.Running) {
		parts = append(parts, fmt.Sprintf("exit code %d", *s.ExitCode))
	}
	if s.NextRetryAt != nil && s.State == string(v1.Exit) {
		parts = append(parts, "retry in "+s.NextRetryAt.Sub(now).Round(time.Second).String())
	}
	if s.Message != "" {
		parts = append(parts, s.Message)
	}
	return strings.Join(parts, ", ")
}

// describe shows everything that there is to say of one container.
func (s state) describe(t *table, now time.Time) {
	t.field("container", s.InternalID)
	t.field("state", s.State)
	t.field("power", s.Power)
	t.field("installed", s.InstallState)
	t.field("note", s.remark(now))
	t.field("up", s.up(now))
	t.field("restarts", strconv.Itoa(s.Restarts))
	t.field("image", s.Image)
	t.field("command", s.Command)
	t.field("volume", s.VolumeID)
	t.field("ports", s.ports())
	t.field("memory", limit(s.Limits.Memory))
	t.field("cpu", cores(s.Limits.CPU))
	t.field("policy", s.Policy.Mode)
	t.field("engine's id", s.ContainerID)
	t.field("created", time.Unix(s.CreatedAt, 0).Format(time.DateTime))
	for _, c := range s.Conditions {
		t.field(c.Type, fmt.Sprintf("%s, %s: %s", c.Status, c.Reason, c.Message))
	}
}

func limit(bytes int64) string {
	if bytes == 0 {
		return "no limit"
	}
	return units.BytesSize(float64(bytes))
}

func cores(n float64) string {
	if n == 0 {
		return "no limit"
	}
	return strconv.FormatFloat(n, 'g', -1, 64) + " cores"
}
