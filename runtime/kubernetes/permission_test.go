package kubernetes

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestPermissionsAreThoseOfTheRole: what doctor looks for is what an operator is asked to grant, and no more.
func TestPermissionsAreThoseOfTheRole(t *testing.T) {
	text, err := os.ReadFile("../../hack/deploy/kubernetes/role.yaml")
	require.NoError(t, err)
	granted, needed := map[string][]string{}, map[string][]string{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role struct {
			Rules []struct{ Verbs, APIGroups, Resources []string }
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &role))
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				granted[rule.APIGroups[0]+"/"+resource] = rule.Verbs
			}
		}
	}
	e := testEngine()
	e.cfg.Balancer, e.cfg.OwnClaims = &Balancer{}, true
	for _, p := range e.permissions() {
		needed[p.group+"/"+p.resource] = p.verbs
	}
	require.Equal(t, granted, needed)
}

// TestDenied: each verb that is missing is named.
func TestDenied(t *testing.T) {
	missing := map[string]bool{"/servers/pods//patch": true, "/servers/pods/resize/patch": true, "//nodes/stats/get": true,
		"coordination.k8s.io/servers/leases//create": true, "coordination.k8s.io/servers/leases//update": true, "/servers/services//delete": true}
	e := against(t, testEngine(), func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", r.URL.Path)
		var review struct {
			Spec struct {
				ResourceAttributes struct{ Namespace, Group, Resource, Subresource, Verb string }
			}
		}
		require.NoError(t, json.NewDecoder(r.Body).Decode(&review))
		a := review.Spec.ResourceAttributes
		allowed := !missing[strings.Join([]string{a.Group, a.Namespace, a.Resource, a.Subresource, a.Verb}, "/")]
		answerJSON(w, http.StatusCreated, map[string]any{"status": map[string]any{"allowed": allowed}})
	})
	for balancer, want := range map[*Balancer][]string{
		nil: {"patch pods", "patch pods/resize", "create, update leases", "get nodes/stats"},
		{}:  {"patch pods", "patch pods/resize", "create, update leases", "get nodes/stats", "delete services"},
	} {
		e.cfg.Balancer = balancer
		got, err := e.denied(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
