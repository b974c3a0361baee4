//go:build !race

package berthtest

const (
	raceSuffix = ""
	cgo        = "0"
)

var raceFlags []string
