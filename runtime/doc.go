// Package runtime holds the types and errors that describe the host: names,
// states and specs of containers, mounts, ports, output and statistics. Its
// subpackages act on the host: docker, cgroup, volume, blob, hostmount and firewall.
// Package kubernetes is an engine of many hosts, and package fake one in memory for tests. All
// engines pass the suite of conform.
//
// The interfaces are declared in the packages that use them. Nothing here knows
// HTTP, the store or the desired state.
package runtime
