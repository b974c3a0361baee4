package transfer

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"berth/controller/jobs"
)

// TestOutgoing: as many transfers copy at once as the configuration has at that time.
func TestOutgoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most, running, end := int64(2), atomic.Int64{}, make(chan struct{})
		all := NewJobs(func() int { return int(most) }, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = all.Run(ctx) }()
		work := func(context.Context, func(report)) error {
			running.Add(1)
			<-end
			running.Add(-1)
			return nil
		}
		for _, step := range []struct{ limit, runs int64 }{{2, 2}, {4, 4}, {3, 4}} { // a lower limit ends none
			most = step.limit
			synctest.Wait()
			for i := range 5 { // as a reconciler does again and again
				_, err := all.copies.Start(jobs.Request[report]{ID: fmt.Sprint(i), Key: fmt.Sprint(i), Work: work})
				assert.NoError(t, err)
			}
			synctest.Wait()
			assert.Equal(t, step.runs, running.Load(), step)
		}
		close(end)
		cancel()
	})
}
