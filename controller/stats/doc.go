// Package stats measures the resource usage of running containers.
//
// The Sampler reads a container's stats while a listener or a request needs them, and
// computes the CPU usage from two readings. The Collector exports the counters of every
// running container to Prometheus when it is scraped. Both read through a Meter with a
// deadline, and omit containers that cannot be measured.
//
// The package does not know engines, sockets or the console: a Fleet lists the running
// containers, and an Audience passes samples to listeners.
package stats
