// Package panel calls the panel of a node: its servers, and reports about them.
//
// A call is tried again while the panel does not answer or answers 5xx, for half a minute; a 4xx is
// final. So a caller that must not lose a report repeats it later by itself.
//
// It knows the panel's addresses and forms. It must not know berth.
package panel
