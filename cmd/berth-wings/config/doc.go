// Package config reads and writes the file of a node as the panels of the Pterodactyl and Pelican
// family hand it out: the same keys with the same defaults. Keys that the bridge has no use for are
// reported once and stay in the file.
//
// It knows what the panel's page has an operator type (configure.go). It must not know berth.
package config
