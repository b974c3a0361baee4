// Package v1 holds the words of berth: what a client can ask for, what berth
// observed, and what it tells. It is plain data and pure functions on it.
//
// An Object has two halves. Only package intent writes a Spec, only the one
// controller of its kind writes a Status, so the two never conflict.
//
// It must not know how anything is stored, served or carried out, and imports
// nothing but the standard library.
package v1
