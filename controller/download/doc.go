// Package download is the controller of pulls: downloads of URLs into volumes.
//
// A download is a job, and no reconcile waits for it. The reconciler starts it when a permit
// is free, records its progress each second, and records its result. After a restart of
// berth a download that was running begins again; after maxAttempts it has failed. The
// content is written under a temporary name, so that no part of it is left.
//
// The package does not know HTTP, addresses or files.
package download
