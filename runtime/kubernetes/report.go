package kubernetes

import (
	"context"
	"strings"

	core1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth/runtime"
)

// Change is something that happened to a container, for those who watch the cluster.
type Change struct {
	Name    runtime.Name
	Warning bool
	Reason  string // in CamelCase, such as Running
	Text    string // one sentence
}

// maxReason and maxText are the bytes that the cluster allows.
const (
	maxReason = 128
	maxText   = 1024
)

// Report creates an event of the pod of a container. client-go's recorder would count events that repeat, for fourteen
// more modules: the caller bounds their number.
func (e *Engine) Report(ctx context.Context, c Change) error {
	return e.do(ctx, quick, "report", c.Name.String(), func(ctx context.Context) error {
		pod, _, err := e.get(ctx, e.podName(c.Name))
		if err != nil {
			return err
		}
		return e.api().Post().Namespace(e.cfg.Namespace).Resource("events").Body(eventOf(pod, c)).Do(ctx).Error()
	})
}

func eventOf(pod *core1.Pod, c Change) *core1.Event {
	now, kind := meta.Now(), core1.EventTypeNormal
	if c.Warning {
		kind = core1.EventTypeWarning
	}
	return &core1.Event{
		ObjectMeta: meta.ObjectMeta{GenerateName: pod.Name + ".", Namespace: pod.Namespace},
		InvolvedObject: core1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			ResourceVersion: pod.ResourceVersion},
		Type: kind, Reason: cut(c.Reason, maxReason), Message: cut(c.Text, maxText),
		FirstTimestamp: now, LastTimestamp: now, Count: 1, Source: core1.EventSource{Component: "berth"},
	}
}

// cut returns the beginning of a text, in UTF-8, with at most so many bytes.
func cut(text string, bytes int) string {
	if len(text) > bytes {
		text = text[:bytes]
	}
	return strings.ToValidUTF8(text, "")
}
