package v1

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// builtin matches the names that values of env may have in the form ${NAME}, beside the escaped
// $${NAME}. Every other text with a $ is the container's own.
var builtin = regexp.MustCompile(`^\$?\$\{BERTH_(IP|PORT|PORT_([2-9]|[1-9][0-9])|MEMORY|GATEWAY)\}$`)

const (
	memoryName  = "${BERTH_MEMORY}"
	gatewayName = "${BERTH_GATEWAY}"
)

// builtins returns the values of the names that a container does not define itself. gateway is the
// address of the host as the container sees it.
func (s ContainerSpec) builtins(gateway string) map[string]string {
	all := map[string]string{"BERTH_IP": "", "BERTH_PORT": "", "BERTH_GATEWAY": gateway,
		"BERTH_MEMORY": strconv.FormatInt(plannedMemory(s.Limits.Memory), 10)}
	var ports []int
	for _, p := range s.Ports {
		inside := p.ContainerPort
		if inside == 0 {
			inside = p.Port
		}
		if !slices.Contains(ports, inside) {
			ports = append(ports, inside)
			all[fmt.Sprintf("BERTH_PORT_%d", len(ports))] = strconv.Itoa(inside)
		}
	}
	if len(ports) > 0 {
		all["BERTH_IP"], all["BERTH_PORT"] = s.Ports[0].IP, strconv.Itoa(ports[0])
		delete(all, "BERTH_PORT_1")
	}
	return all
}

// plannedMemory returns the MiB that a program may plan with under a limit: panels of eggs add 15 %
// up to 2 GiB, 10 % up to 4 GiB and 5 % above for what a runtime needs beside it.
func plannedMemory(limit int64) int64 {
	mib := float64(limit) / (1 << 20)
	for _, step := range []struct{ upTo, factor float64 }{{2048, 1.15}, {4096, 1.10}} {
		if planned := math.Round(mib / step.factor); planned <= step.upTo {
			return int64(planned)
		}
	}
	return int64(math.Round(mib / 1.05))
}

// ExpandedEnv returns env with the built-in names of its values replaced. A name without a value is
// empty.
func (s ContainerSpec) ExpandedEnv(gateway string) map[string]string {
	all, expanded := s.builtins(gateway), maps.Clone(s.Env)
	for name, value := range s.Env {
		expanded[name] = variable.ReplaceAllStringFunc(value, func(found string) string {
			literal, escaped := strings.CutPrefix(found, "$$")
			switch {
			case !builtin.MatchString(found):
				return found
			case escaped:
				return "$" + literal
			}
			return all[variableName(found)]
		})
	}
	return expanded
}

// Variables returns what ${NAME} in a value of config_files may name: the built-in names, and the
// variables of env as the container has them.
func (s ContainerSpec) Variables(gateway string) map[string]string {
	all := s.builtins(gateway)
	maps.Copy(all, s.ExpandedEnv(gateway))
	return all
}

// NamesGateway reports whether a value of env or config_files names the address of the host.
func (s ContainerSpec) NamesGateway() bool {
	text, _ := json.Marshal(s.ConfigFiles) // plain data: it cannot fail
	return s.envNames(gatewayName) || strings.Contains(string(text), gatewayName)
}

func (s ContainerSpec) envNames(name string) bool {
	for _, value := range s.Env {
		if strings.Contains(value, name) {
			return true
		}
	}
	return false
}

// Expansion identifies the values in env that change without another SpecHash; empty: there are none.
func (s ContainerSpec) Expansion(gateway string) (text string) {
	if s.envNames(memoryName) {
		text = fmt.Sprintf("memory=%d ", plannedMemory(s.Limits.Memory))
	}
	if s.envNames(gatewayName) {
		text += "gateway=" + gateway
	}
	return text
}
