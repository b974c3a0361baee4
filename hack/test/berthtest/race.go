//go:build race

package berthtest

const (
	raceSuffix = "-race"
	raceFlag   = "-race"
	cgo        = "1"
)
