// Package jobs runs long work beside the loops: archives, downloads, image pulls, preparations of volumes. A
// reconcile never waits for it: it starts a job, observes it, and is named by Source when
// the job has ended.
//
//	switch job := r.Jobs.Get(id); job.State {
//	case jobs.None:
//		started, err := r.Jobs.Start(jobs.Request[progress]{ID: id, Key: volume, Record: …, Work: …})
//		// not started: return controller.Result{Waiting: true, RequeueAfter: jobs.AskAgain}
//	case jobs.Running:
//		// record job.Value, which the work has reported last
//	case jobs.Ended:
//		// record job.Err, then
//		r.Jobs.Forget(id)
//	}
//
// A request without a permit is queued, and stays queued by asking again. The order is that of the
// first request, and one key has one turn: when a job of a key begins, the other requests of
// this key go to the end. So many requests of one volume delay another volume by one job.
//
// The package does not know what a job does. Nothing is stored: after a restart of berth
// whoever finds a record of an interrupted job starts it again.
package jobs
