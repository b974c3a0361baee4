// Package download is the controller of pulls: downloads of URLs into volumes.
//
// A download runs in a goroutine of Jobs, and no reconcile waits for it. The reconciler
// starts it when a permit is free, records its progress each second, and records its
// result. After a restart of berth a download that was running begins again; after
// maxAttempts it is failed. The content is written under a temporary name, which the
// scan of a volume removes, so that no part of it is left.
//
// download.go has the reconciler, jobs.go runs the downloads, turn.go lets one give its permit to
// others.
//
// The package does not know HTTP, addresses or files.
package download
