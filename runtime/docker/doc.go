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
// engine.go has the Engine, connection.go its client, calls.go what every call gets, errors.go
// the classes of errors. create.go creates containers from spec.go; lifecycle.go starts,
// signals, kills, changes and removes them; inspect.go and state.go observe them, watch.go
// their events, oom.go those about memory. name.go has names and labels, ids.go the cache of
// ids. image.go finds images, pull.go with pull_error.go pulls them, network.go creates the
// network. logs.go follows output, which lines.go parses, input.go writes input. writable.go
// and places.go find where a container writes. instance.go and info.go identify the engine.
//
// Package docker knows neither HTTP nor the store nor the desired state.
package docker
