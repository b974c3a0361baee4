//go:build race

package berthtest

const (
	raceSuffix = "-race"
	cgo        = "1"
)

var raceFlags = []string{"-race"}
