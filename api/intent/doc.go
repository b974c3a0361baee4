// Package intent turns requests into desired state: admission rules that are
// pure, and one transaction of the store for each request. It is the only
// writer of a Spec.
//
// A refusal is a *v1.Error. Any other error is the store's own, and says that
// nothing is known of the outcome but that nothing was half done.
//
// It must not know HTTP, and nothing of the host: no engine, no file, no
// firewall. What it wrote is carried out by controllers, which it does not
// know either.
package intent
