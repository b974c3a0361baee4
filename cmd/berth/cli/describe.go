package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"

	"berth/api/client"
	v1 "berth/api/v1"
)

// describe shows a container in detail.
func describe(t *table, c client.Container, now time.Time) {
	t.field("container", c.InternalID)
	t.field("state", string(c.State))
	t.field("power", string(c.Power))
	t.field("installed", string(c.InstallState))
	t.field("note", note(c, now))
	t.field("up", uptime(c, now))
	t.field("restarts", strconv.Itoa(c.RestartCount))
	t.field("image", c.Image)
	t.field("command", c.StartupCommand)
	t.field("volume", c.VolumeID)
	t.field("ports", portList(c.Ports))
	t.field("memory", limit(c.Limits.Memory))
	t.field("cpu", cores(c.Limits.CPU))
	t.field("policy", c.RestartPolicy.Mode)
	t.field("engine's id", c.ContainerID)
	t.field("created", time.Unix(c.CreatedAt, 0).Format(time.DateTime))
	for _, condition := range c.Conditions {
		t.field(condition.Type, fmt.Sprintf("%s, %s: %s", condition.Status, condition.Reason, condition.Message))
	}
}

// uptime returns how long a container has been running; empty if it does not run.
func uptime(c client.Container, now time.Time) string {
	if c.StartedAt == nil || c.State == v1.Exit || c.State == v1.Ready {
		return ""
	}
	return age(*c.StartedAt, now)
}

// note returns the exit code, the next retry and the message of a container, as far
// as its state makes them interesting.
func note(c client.Container, now time.Time) string {
	var parts []string
	if c.ExitCode != nil && c.State != v1.Running {
		parts = append(parts, fmt.Sprintf("exit code %d", *c.ExitCode))
	}
	if c.NextRetryAt != nil && c.State == v1.Exit {
		parts = append(parts, "retry in "+c.NextRetryAt.Sub(now).Round(time.Second).String())
	}
	if c.Message != "" {
		parts = append(parts, c.Message)
	}
	return strings.Join(parts, ", ")
}

// portList returns published ports, such as "25565/tcp,127.0.0.1:25566/tcp".
func portList(ports []v1.Port) string {
	list := make([]string, len(ports))
	for i, p := range ports {
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
