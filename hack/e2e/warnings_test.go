package e2e_test

import (
	"strings"
	"testing"

	"berth/hack/test/berthtest"
)

// TestSlowStepsAreReported configures short times after which a start whose pattern
// does not match, and an installation that does not end, get a condition.
func TestSlowStepsAreReported(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{Config: "reconcile: {resync: 1s, start_warning: 1s, install_warning: 1s}"})
	b.Create(t, "start", berthtest.Spec{"startup_command": "sleep 100000", "start_pattern": "^never", "power": "running"})
	b.Create(t, "install", berthtest.Spec{"install_script": "sleep 100000"})
	for id, condition := range map[string]string{"start": "StartPatternNotMatched", "install": "InstallSlow"} {
		berthtest.Until(t, wait, condition, func() bool {
			return strings.Contains(string(b.Must(t, "GET", "/containers/"+id, nil).Body), condition)
		})
	}
}
