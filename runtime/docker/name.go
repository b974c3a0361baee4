package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strconv"
	"strings"

	"berth/runtime"
)

// The labels of every container of a store. A client's labels never have labelPrefix.
const (
	labelStore     = "io.berth.store"
	labelContainer = "io.berth.container"
	labelRole      = "io.berth.role"
	labelSpec      = "io.berth.spec"
	labelRevision  = "io.berth.revision"
	labelLife      = "io.berth.incarnation"
	labelPrefix    = "io.berth."
)

// engineName returns the name in Docker. It differs between two stores on one engine.
func engineName(storeID string, n runtime.Name) string {
	sum := sha256.Sum256([]byte(storeID))
	return "berth-" + hex.EncodeToString(sum[:4]) + "-" + string(n.Role) + "-" + n.ID
}

// labels returns the client's labels and berth's own.
func labels(storeID string, s runtime.Spec) map[string]string {
	all := make(map[string]string, len(s.Labels)+6)
	maps.Copy(all, s.Labels)
	maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, labelPrefix) })
	all[labelStore] = storeID
	all[labelContainer] = s.Name.ID
	all[labelRole] = string(s.Name.Role)
	all[labelSpec] = s.SpecHash
	all[labelRevision] = strconv.FormatUint(s.Revision, 10)
	if s.Incarnation != "" {
		all[labelLife] = s.Incarnation
	}
	return all
}

// nameOf returns the name in a container's labels; ok is false if the container
// is not of this store.
func nameOf(storeID string, labels map[string]string) (n runtime.Name, ok bool) {
	n = runtime.Name{ID: labels[labelContainer], Role: runtime.Role(labels[labelRole])}
	return n, labels[labelStore] == storeID && n.ID != "" && (n.Role == runtime.Server || n.Role == runtime.Install)
}
