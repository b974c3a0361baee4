// Package docker is the container engine over Docker's API, and the only
// package that imports Docker. What it means to the rest is in package runtime.
//
// It keeps no state that matters: names are derived from the store's id and a
// runtime.Name, labels say whose a container is and what it was made from. A
// cache of container ids saves an inspect in front of each call, and names no
// container that was not seen to carry this store's label. Containers without
// that label are never touched.
//
// Every call has a deadline of its own; Pull, Logs and Watch stream. No call
// waits for another: how many are made at once is the caller's to bound.
//
// It must not know of HTTP, the store, or what a client wants.
package docker
