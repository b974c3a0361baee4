//go:build !race

package berthtest

const (
	raceSuffix = ""
	raceFlag   = "-race=false"
	cgo        = "0"
)
