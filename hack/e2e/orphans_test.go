package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// onlyOrphans requires that the remaining containers on the engine never ran and
// are reported as orphans. A killed daemon had requested them, and the next daemon
// deleted their records before the engine had created them. They are removed after
// a grace period (ADR 0009).
func onlyOrphans(t *testing.T, b *berthtest.Berth, left []enginetest.Listed) {
	t.Helper()
	for _, c := range left {
		id := c.Labels["io.berth.container"]
		require.Equal(t, "created", c.State, "a container of %s is left on the engine", id)
		report := fmt.Sprintf(`"msg":"a container has no record and is removed after a grace period","container":%q`, id)
		berthtest.Until(t, wait, "the orphan of "+id+" is reported", func() bool { return strings.Contains(b.Log(), report) })
	}
}
