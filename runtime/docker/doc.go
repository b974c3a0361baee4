// Package docker drives containers through Docker's API. No other package
// imports Docker's client; the others use the types and errors of package runtime.
//
// An Engine needs no stored state: container names are derived from the store's
// id and a runtime.Name, and labels name the store and the spec hash. A cache of
// container ids saves an inspect before each call. It holds only containers that
// carried this store's label. The Engine never touches other containers.
//
// Every call has its own deadline; Pull, Logs and Watch stream. No call waits
// for another: callers limit how many calls run at once.
//
// Package docker knows neither HTTP nor the store nor the desired state.
package docker
