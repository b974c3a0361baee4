// Package event bounds how many stored transitions are kept, and counts them.
//
// What is older than the retention goes, and so does what is more than the
// greatest number. Whoever is still behind is told of the gap when it reads on.
// It must not know who reads transitions, or what they mean.
package event
