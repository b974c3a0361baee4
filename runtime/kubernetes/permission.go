package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// permission is something that the engine does with a kind of objects; see hack/deploy/kubernetes/role.yaml.
type permission struct {
	group, resource string
	verbs           []string
}

// permissions returns those that the engine needs.
func (e *Engine) permissions() []permission {
	list := []permission{
		{"", "namespaces", []string{"get"}},
		{"", "pods", []string{"get", "list", "watch", "create", "delete", "patch"}},
		{"", "pods/log", []string{"get"}},
		{"", "pods/exec", []string{"get", "create"}},
		{"", "pods/attach", []string{"get", "create"}},
		{"", "pods/resize", []string{"patch"}},
		{"", "secrets", []string{"create", "delete"}},
		{"", "events", []string{"list", "create"}},
		{"coordination.k8s.io", "leases", []string{"get", "create", "update"}},
		{"", "nodes", []string{"get", "list", "watch"}},
		{"", "nodes/stats", []string{"get"}},
	}
	if e.cfg.OwnClaims {
		list = append(list, permission{"", "persistentvolumeclaims", []string{"get", "create", "patch", "delete"}})
	}
	if e.cfg.Balancer != nil {
		list = append(list, permission{"", "services", []string{"create", "patch", "delete"}})
	}
	return list
}

// denied returns what the engine needs and its account may not do, such as "patch pods/resize".
func (e *Engine) denied(ctx context.Context) (list []string, err error) {
	for _, p := range e.permissions() {
		var verbs []string
		for _, verb := range p.verbs {
			allowed, err := e.allowed(ctx, p, verb)
			if err != nil {
				return nil, err
			}
			if !allowed {
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) > 0 {
			list = append(list, strings.Join(verbs, ", ")+" "+p.resource)
		}
	}
	return list, nil
}

// allowed asks the cluster about one verb: the list of all rules is not complete where the cluster has other authorizers
// than RBAC.
func (e *Engine) allowed(ctx context.Context, p permission, verb string) (bool, error) {
	resource, sub, _ := strings.Cut(p.resource, "/")
	namespace := e.cfg.Namespace
	if resource == "nodes" {
		namespace = ""
	}
	body := fmt.Appendf(nil, `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes":
		{"namespace": %q, "group": %q, "resource": %q, "subresource": %q, "verb": %q}}}`, namespace, p.group, resource, sub, verb)
	answer, err := e.api().Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").Body(body).
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return false, err
	}
	var review struct{ Status struct{ Allowed bool } }
	err = json.Unmarshal(answer, &review)
	return review.Status.Allowed, err
}
