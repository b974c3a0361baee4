// Package keeper puts the program cmd/keeper, the first process of every container, where engines
// can mount it, and writes its command line.
//
// Each version of the program has a folder of its own, which stays: containers that an older berth
// created start with the program that they know.
package keeper
