package kubernetes

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	core1 "k8s.io/api/core/v1"

	"berth/runtime"
)

// The labels, the annotations, the gate and the finalizer of the pods of a store.
const (
	labelStore       = "berth.io/store"
	labelContainer   = "berth.io/container" // the pod's own name, which a Service selects
	labelID          = "berth.io/internal-id"
	labelRole        = "berth.io/role"
	labelVolume      = "berth.io/volume"  // of a claim
	labelsOfClient   = "labels.berth.io/" // and the client's key
	annotationRecord = "berth.io/record"
	annotationStart  = "berth.io/started"
	annotationID     = "berth.io/machine-id"
	annotationEnd    = "berth.io/ended"            // when the node of a run was found to be fenced
	annotationKill   = "berth.io/killed"           // the engine deletes the pod of a run to end it
	annotationPublic = "berth.io/public-addresses" // of a node: those that a NAT translates to it, comma-separated
	annotationEvict  = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	gate             = "berth.io/start"
	finalizer        = "berth.io/observed"
	serverContainer  = "server" // name of a pod's container
)

// errNotOurs means that a pod without this store's label has the name.
var errNotOurs = fmt.Errorf("%w: another has its name", runtime.ErrNotFound)

// record is what the engine stores in a pod beside Kubernetes' own fields. Ids and labels of
// clients are longer than a label's value may be, so an annotation holds them.
type record struct {
	ID, Role    string
	ContainerID string // the pods of all runs of a container have the same
	ImageID     string
	Image       string `json:",omitempty"` // reference with the digest; empty in a record of an older berth
	Registry    string `json:",omitempty"` // whose configured credentials the image needs; empty: none
	SpecHash    string
	Revision    uint64            `json:",omitempty"`
	Incarnation string            `json:",omitempty"`
	Live        runtime.Live      // the limits in force; Kubernetes counts thousandths of a processor
	Mounts      []string          `json:",omitempty"` // directories of the host that it mounts
	StopSignal  string            `json:",omitempty"`
	StopTimeout time.Duration     `json:",omitempty"`
	SignalGroup bool              `json:",omitempty"`
	User        string            `json:",omitempty"` // of the spec, or of the image
	Ports       []runtime.Port    `json:",omitempty"` // an older berth has recorded only those that a load balancer publishes
	Labels      map[string]string `json:",omitempty"` // of the client
	Placement   runtime.Placement `json:",omitzero"`
	Last        *run              `json:",omitempty"` // the last run that exited, of an earlier pod
}

// run is a run of a container.
type run struct {
	StartedAt, FinishedAt time.Time
	ExitCode              int
	OOMKilled             bool
	Interrupted           bool `json:",omitempty"`
}

func (r record) name() runtime.Name { return runtime.Name{ID: r.ID, Role: runtime.Role(r.Role)} }

func (r record) text() (string, error) {
	text, err := json.Marshal(r)
	return string(text), err
}

// recordOf returns the record of a pod. It reports false for a pod of another store.
func (e *Engine) recordOf(pod *core1.Pod) (r record, ours bool) {
	if pod.Labels[labelStore] != hash(e.cfg.StoreID) || json.Unmarshal([]byte(pod.Annotations[annotationRecord]), &r) != nil {
		return r, false
	}
	if r.Registry == "" && slices.ContainsFunc(pod.Spec.ImagePullSecrets,
		func(s core1.LocalObjectReference) bool { return s.Name == pod.Name }) {
		if named, err := reference.ParseNormalizedNamed(serverOf(pod).Image); err == nil { // an older berth has not recorded it
			r.Registry = reference.Domain(named)
		}
	}
	if claimOf(pod) != e.storageOf(r.Mounts).claim {
		r.SpecHash = "" // so that the container is made anew once it does not run
	}
	return r, e.podName(r.name()) == pod.Name
}

// claimOf returns the name of the claim with the volumes of a pod.
func claimOf(pod *core1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if v.Name == volumesName && v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

// hash shortens a text to what fits into a name or a label.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// podName returns the name of the pod of n, a lock for its creation.
func (e *Engine) podName(n runtime.Name) string {
	return "berth-" + hash(e.cfg.StoreID)[:8] + "-" + string(n.Role) + "-" + hash(n.ID)
}

// newContainerID returns an id for a container. It begins with the name of its pods.
func (e *Engine) newContainerID(n runtime.Name) string {
	return e.podName(n) + "." + strings.ToLower(rand.Text()[:12])
}

// podOfID returns the name of the pods of a container.
func podOfID(containerID string) string {
	name, _, _ := strings.Cut(containerID, ".")
	return name
}
