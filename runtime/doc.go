// Package runtime holds the words for what happens on the host. Its
// subpackages do it: docker, cgroup, volume, firewall, and fake for tests;
// conform is what docker and fake must both pass.
//
// The interfaces live with the packages that use them. Nothing here knows of
// HTTP, the store or what a client wants.
package runtime
