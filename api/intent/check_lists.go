package intent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// maxList limits the entries of a list or map of a spec.
const maxList = 1000

// CheckBindings adds every error of port bindings to f, and returns the bindings
// with canonical addresses. The result is never nil.
func CheckBindings(f *v1.FieldErrors, ports []v1.Port) []v1.Port {
	checked := make([]v1.Port, 0, len(ports))
	seen := map[v1.Port]bool{}
	if len(ports) > maxList {
		f.Add("ports", "must be at most %d", maxList)
		return checked
	}
	for i, p := range ports {
		at := fmt.Sprintf("ports[%d]", i)
		p.IP = checkIP(f, at+".ip", p.IP)
		checkPort(f, at+".port", p.Port)
		checkProtocol(f, at+".protocol", p.Protocol)
		if p.ContainerPort != 0 {
			checkPort(f, at+".container_port", p.ContainerPort)
		}
		if p.ContainerPort == p.Port {
			p.ContainerPort = 0
		}
		key := v1.Port{IP: p.IP, Port: p.Port, Protocol: p.Protocol}
		if seen[key] {
			f.Add(at, "is the same binding twice")
		}
		seen[key] = true
		checked = append(checked, p)
	}
	return checked
}

// checkMaps checks env and labels.
func checkMaps(f *v1.FieldErrors, spec *v1.ContainerSpec) {
	spec.Env, spec.Labels = nilIfEmpty(spec.Env), nilIfEmpty(spec.Labels)
	checkMap(f, "env", spec.Env)
	for _, key := range slices.Sorted(maps.Keys(spec.Env)) {
		if strings.Contains(key, "=") {
			f.Add("env."+key, "must not hold =")
		}
	}
	checkLabels(f, spec.Labels)
}

// maxLabels is how many bytes the labels of an object may have: they are in memory, and in each list.
const maxLabels = 64 << 10

func checkLabels(f *v1.FieldErrors, labels map[string]string) {
	checkMap(f, "labels", labels)
	bytes := 0
	for key, value := range labels {
		bytes += len(key) + len(value)
	}
	if bytes > maxLabels {
		f.Add("labels", "must have at most %d bytes in all", maxLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if strings.HasPrefix(key, "io.berth.") {
			f.Add("labels."+key, "must not begin with io.berth.")
		}
	}
}

// nilIfEmpty returns nil for an empty map, so that both are stored the same.
func nilIfEmpty(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

func checkMap(f *v1.FieldErrors, field string, m map[string]string) {
	if len(m) > maxList {
		f.Add(field, "must be at most %d", maxList)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if key == "" || strings.ContainsRune(key, 0) {
			f.Add(field, "must have names that are not empty and hold no NUL")
		}
		checkText(f, field+"."+key, m[key])
	}
}
