// Package kubernetes drives containers as pods of a Kubernetes cluster. No other package
// imports the cluster's client; the others use the types and errors of package runtime.
//
// A container is a pod for each run. The pod's name is derived from the store's id and a
// runtime.Name, its label names the store, and an annotation holds the record: what the
// container was created from and how its last run ended. A pod with a scheduling gate was
// created and not started. The start removes the gate. The next start deletes the pod of the
// run that exited and creates its successor, which inherits the record. A finalizer keeps a pod
// that somebody deletes, with its exit code, until the engine has observed it.
//
// A pod's first process is the keeper (see cmd/keeper), which the engine copies into the
// volumes' claim. An exec of the keeper carries out signals, because deleting a pod would lose
// its log. Deleting a pod with grace period 0 ends the object and not the process, so the engine
// does this only to pods that have exited, were never scheduled, or are on a fenced node, and
// always with their UID.
//
// What else belongs to a container, the Service of its ports and the Secret of its image, has the
// name of its pods too, and is removed with it.
//
// The kubelet of a node that is cut off cannot report what its pods do: the engine returns
// ErrLost for them, and ends none. Only when an operator has fenced the node, by the taint
// out-of-service or by removing its object, the engine records the end of the run in the pod.
// The next start makes a successor on another node.
//
// Package kubernetes knows neither HTTP nor the store nor the desired state.
package kubernetes
