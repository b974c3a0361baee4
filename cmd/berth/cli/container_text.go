package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/api/client"
	v1 "berth/api/v1"
)

// why returns why a container is in its state, and what happens next, as far as it
// matters: nothing for one that runs and was not restarted.
func why(c client.ContainerState, now time.Time) string {
	var parts []string
	add := func(condition bool, text string) {
		if condition {
			parts = append(parts, text)
		}
	}
	add(c.Message != "", c.Message)
	add(c.OOMKilled && c.State != v1.Running && !strings.Contains(c.Message, "out of memory"), "out of memory")
	add(c.State == v1.Starting && c.Message == "", "no line has matched start_pattern yet")
	add(c.State == v1.Installing && c.Message == "" && c.Deadline != nil, "the install script is running")
	if c.ExitCode != nil {
		code := "exit code " + strconv.Itoa(*c.ExitCode)
		ended := c.State == v1.Exit || c.State == v1.Failed
		add(ended && !strings.Contains(c.Message, code), code)
		add(c.State == v1.Starting && c.RestartCount > 0, "last "+code)
	}
	add(c.RestartCount > 0, restarts(c))
	if c.NextRetryAt != nil && c.State != v1.Running {
		add(true, "next attempt in "+span(c.NextRetryAt.Sub(now).Round(time.Second)))
	}
	if limit := limitName(c.State); limit != "" && c.Deadline != nil {
		add(true, limit+" in "+span(c.Deadline.Sub(now).Round(time.Second)))
	}
	return strings.Join(parts, ", ")
}

// restarts returns how often the restart policy has started a container. After a start
// that failed there was no run, so it is no restart.
func restarts(c client.ContainerState) string {
	if c.State == v1.Exit && c.StartedAt == nil && (c.ExitCode == nil || strings.HasPrefix(c.Message, "cannot start: ")) {
		return retryText(c.RestartCount)
	}
	return restartText(c.RestartCount)
}

func retryText(n int) string { return "start tried again " + times(n) }

func restartText(n int) string { return "restarted " + times(n) }

// times returns "once" or "3 times".
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// limitName returns the field of the spec that limits the time in a state.
func limitName(state v1.Phase) string {
	switch state {
	case v1.Installing:
		return "install_timeout"
	case v1.Starting:
		return "start_timeout"
	}
	return ""
}

// portList returns published ports, such as "25565-25582/tcp,127.0.0.1:25566/tcp":
// consecutive ports of an address are one range.
func portList(ports []v1.Port) string {
	ports = slices.Clone(ports)
	slices.SortFunc(ports, func(a, b v1.Port) int {
		return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	var list []string
	for len(ports) > 0 {
		n := 1
		for n < len(ports) && follows(ports[n-1], ports[n]) {
			n++
		}
		list = append(list, portRange(ports[0], ports[n-1]))
		ports = ports[n:]
	}
	return strings.Join(list, ",")
}

// follows reports whether b extends a range of ports that ends with a.
func follows(a, b v1.Port) bool {
	return a.IP == b.IP && a.Protocol == b.Protocol && b.Port == a.Port+1 && inContainer(b) == inContainer(a)+1
}

// inContainer returns the port inside the container.
func inContainer(p v1.Port) int { return cmp.Or(p.ContainerPort, p.Port) }

func portRange(first, last v1.Port) string {
	text := numbers(first.Port, last.Port) + "/" + first.Protocol
	switch {
	case first.IP == "0.0.0.0":
	case strings.Contains(first.IP, ":"):
		text = "[" + first.IP + "]:" + text
	default:
		text = first.IP + ":" + text
	}
	if inContainer(first) != first.Port {
		text += "->" + numbers(inContainer(first), inContainer(last))
	}
	return text
}

// numbers returns "1" or "1-3".
func numbers(first, last int) string {
	if first == last {
		return strconv.Itoa(first)
	}
	return strconv.Itoa(first) + "-" + strconv.Itoa(last)
}
